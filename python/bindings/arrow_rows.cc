#include "arrow_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/near.h"
#include "data/arrow.h"

namespace anabranch::python {
namespace {

using Column = data::RowInputs::Column;

// A struct of the interface that is released at the end of its scope.
template <class T> struct Held : T {
  Held() : T{} {}
  Held(const Held&) = delete;
  ~Held() { free(); }
  void free() {
    if (this->release) this->release(this);
    this->release = nullptr;
  }
};

struct Source {
  int64_t child;
  std::optional<data::ArrowType> type;  // none: the table lacks the column
  char split;
};

void check(data::ArrowArrayStream* stream, int code) {
  if (code == 0) return;
  const char* const why = stream->get_last_error(stream);
  AB_THROW(InvalidArgument, "rows: the Arrow stream failed: {}", why ? why : "no reason was given");
}

// -1: the table has no such column, and need not have it.
int64_t position(const Column& column, bool by_position, const data::ArrowSchema& schema) {
  if (by_position) {
    AB_CHECK(column.number < schema.n_children, InvalidArgument,
             "rows: the table must have a column {}, got {} columns", column.number, schema.n_children);
    return column.number;
  }
  std::vector<std::string> names;
  for (int64_t i = 0; i < schema.n_children; ++i) names.emplace_back(schema.children[i]->name);
  const std::string name = column.shown();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) {
    AB_CHECK(std::find(found + 1, names.end(), column.name) == names.end(), InvalidArgument,
             "rows: the table has the column {} more than once", name);
    return found - names.begin();
  }
  if (column.optional) return -1;
  AB_THROW(InvalidArgument, "rows: the table has no column {}, got {}{}", name,
           names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")), near_name(name, names));
}

std::vector<Source> sources_of(const data::ArrowSchema& schema, const data::RowInputs& inputs) {
  std::vector<Source> sources;
  for (const Column& column : inputs.columns()) {
    const int64_t child = position(column, inputs.takes_lists(), schema);
    if (child < 0) {
      sources.push_back({-1, std::nullopt, 0});
      continue;
    }
    data::ArrowType type(*schema.children[child], column.shown());
    AB_CHECK(!type.is_list() || !column.two_splits, InvalidArgument, "rows: column {}: {}, got lists", column.shown(),
             data::RowInputs::kTwoSplits);
    AB_CHECK(!type.is_list() || column.split, InvalidArgument,
             "rows: column {}: the column is not a list (split), got lists", column.shown());
    AB_CHECK(!type.is_float() || !column.is_text, InvalidArgument,
             "rows: column {}: text must be text or integers: 7 and 7.0 differ, got the Arrow type {}", column.shown(),
             type.format());
    sources.push_back({child, std::move(type), column.split});
  }
  return sources;
}

void add_row(const data::ArrowArray& batch, int64_t row, const std::vector<Source>& sources, data::RowInputs* inputs) {
  std::vector<std::string> own(sources.size());
  std::vector<std::string_view> texts(sources.size());
  AB_CHECK(!data::is_null(batch, row), InvalidArgument, "row {}: a row must have values, got null", inputs->rows());
  for (size_t i = 0; i < sources.size(); ++i) {
    const Source& source = sources[i];
    if (!source.type) continue;
    try {
      texts[i] = source.type->text(*batch.children[source.child], row, source.split, &own[i]);
    } catch (const Error& e) {
      AB_THROW(InvalidArgument, "row {}: column {}: {}", inputs->rows(), inputs->columns()[i].shown(), e.message());
    }
  }
  inputs->add(texts);
}

bool has_null(const data::ArrowArray& batch, int64_t row, int64_t count) {
  for (int64_t i = row; i < row + count; ++i) {
    if (data::is_null(batch, i)) return true;
  }
  return false;
}

// Runs of rows column by column; row by row where one is refused, for the error, where there are few, and without a
// table.
void add_batch(const data::TableBatch& batch, const std::vector<Source>& sources, const data::TableColumns* table,
               data::RowInputs* inputs) {
  constexpr int64_t kFew = 16;
  const auto scratch = std::make_unique<data::TableColumns::Scratch>(sources.size());
  const int64_t end = batch.array.offset + batch.array.length;
  for (int64_t row = batch.array.offset; row < end;) {
    const int64_t run = std::min(data::ValueRun::kRows, end - row);
    const bool whole = table && run > kFew && !has_null(batch.array, row, run);
    if (whole && inputs->add(*table, batch, row, run, scratch.get())) {
      row += run;
      continue;
    }
    for (const int64_t last = row + run; row < last; ++row) add_row(batch.array, row, sources, inputs);
  }
}

}  // namespace

bool is_arrow_table(nb::handle rows) { return nb::hasattr(rows, "__arrow_c_stream__") && !nb::hasattr(rows, "keys"); }

void add_arrow_rows(nb::handle table, data::RowInputs* inputs) {
  const nb::object capsule = table.attr("__arrow_c_stream__")();
  auto* stream = static_cast<data::ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (!stream) throw nb::python_error();
  Held<data::ArrowSchema> schema;
  check(stream, stream->get_schema(stream, &schema));
  AB_CHECK(std::string_view(schema.format) == "+s", InvalidArgument,
           "rows must be a table with columns, got the Arrow type {}", schema.format);
  const std::vector<Source> sources = sources_of(schema, *inputs);
  std::optional<data::TableColumns> columns;
  if (inputs->lines() == data::Lines::kColumns) {
    std::vector<data::TableColumn> types;
    for (const Source& source : sources) types.push_back({source.type ? &*source.type : nullptr, source.split});
    columns.emplace(inputs->table(std::move(types)));
  }
  for (;;) {
    data::TableBatch batch;
    check(stream, stream->get_next(stream, &batch.array));
    if (!batch.array.release) return;
    for (const Source& source : sources) batch.places.push_back(source.child);
    if (columns) columns->prepare(&batch, nullptr);
    add_batch(batch, sources, columns ? &*columns : nullptr, inputs);
  }
}

}  // namespace anabranch::python
