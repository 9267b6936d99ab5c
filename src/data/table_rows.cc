#include "data/table_rows.h"

#include <algorithm>

#include "base/error.h"
#include "data/row_inputs.h"
#include "data/schema_text.h"

namespace anabranch::data {

// A row while it is read by itself.
struct TableRows::Row {
  std::vector<std::string> own;
  std::vector<Field> fields;
  std::string line;
};

TableRows::TableRows(const Settings& settings, const ArrowSchema& table, const std::string& path)
    : share_(settings.share),
      format_(parse_schema_text(settings.format)),
      heads_(format_),
      plan_(settings.schema, format_, &heads_) {
  AB_CHECK(format_.lines == Lines::kColumns, InvalidArgument,
           "{}: the schema describes {} lines, but this file has columns: describe them with anabranch.Schema()", path,
           format_.lines == Lines::kLibsvm ? "libsvm" : "MultiSlot");
  std::vector<std::string_view> names;
  for (int64_t i = 0; i < table.n_children; ++i) names.emplace_back(table.children[i]->name);
  head_ = heads_.head(names, path);
  AB_CHECK(head_.fields <= names.size(), InvalidArgument, "{}: the schema uses column {}, but the table has {}", path,
           head_.fields - 1, names.size());
  sources_.resize(names.size());
  for (const ColumnRule& rule : format_.rules) add(rule, table, names, path);
  for (size_t i = 0; i < names.size(); ++i) {
    const Source& source = sources_[i];
    AB_CHECK(!source.type || !source.type->is_list() || source.split, InvalidArgument,
             "{}: column {}: the column is not a list (split), got lists", path, names[i]);
  }
  for (const size_t at : head_.columns) sources_[at].is_needed = true;
  if (!share_.column.empty()) {
    share_column_ = share_column(share_, format_.header, names, path);
    AB_CHECK(share_column_ < names.size(), InvalidArgument, "{}: set_share: the table has no column {}", path,
             share_.column);
    Source& source = sources_[share_column_];
    const ArrowSchema& column = *table.children[share_column_];
    if (!source.type) source.type = std::make_unique<ArrowType>(column, std::string(names[share_column_]));
  }
  if (!share_.is_whole()) return;
  std::vector<TableColumn> columns;
  for (const Source& source : sources_) columns.push_back({source.type.get(), source.split});
  columns_.emplace(plan_, head_.columns, std::move(columns));
}

void TableRows::add(const ColumnRule& rule, const ArrowSchema& table, const std::vector<std::string_view>& names,
                    const std::string& path) {
  for (const ColumnRule& part : rule.parts) add(part, table, names, path);
  for (const ColumnRef& column : rule.columns) {
    const auto at = column.number >= 0
                        ? static_cast<size_t>(column.number)
                        : static_cast<size_t>(std::find(names.begin(), names.end(), column.name) - names.begin());
    if (at >= names.size()) continue;  // of a feature that the program does not use
    Source& source = sources_[at];
    if (!source.type) {
      source.type = std::make_unique<ArrowType>(*table.children[at], std::string(names[at]));
      source.is_number = source.type->is_plain_float() && share_.is_whole();
    }
    source.is_number &= rule.transform->type == Transform::Type::kNumber && !rule.split;
    AB_CHECK(!source.type->is_list() || !rule.split || !source.split || rule.split == source.split, InvalidArgument,
             "{}: column {}: {}, got lists", path, names[at], RowInputs::kTwoSplits);
    if (rule.split) source.split = rule.split;
    AB_CHECK(!source.type->is_float() || rule.transform->type != Transform::Type::kText, InvalidArgument,
             "{}: column {}: text must be text or integers: 7 and 7.0 differ, got the Arrow type {}", path, names[at],
             source.type->format());
  }
}

void TableRows::parse(const TableBatch& batch, int64_t begin, int64_t count, Block* out) const {
  RowWriter writer(out);
  Row state{std::vector<std::string>(sources_.size()), std::vector<Field>(sources_.size()), {}};
  TableColumns::Scratch scratch(sources_.size());
  begin += batch.array.offset;
  const int64_t end = begin + count;
  for (int64_t row = begin; row < end;) {
    const int64_t run = std::min(ValueRun::kRows, end - row);
    if (columns_ && columns_->write(batch, row, run, &scratch, &writer)) {
      row += run;
      continue;
    }
    for (const int64_t last = row + run; row < last; ++row) parse_row(batch, row, &state, out, &writer);
  }
}

void TableRows::parse_row(const TableBatch& batch, int64_t row, Row* state, Block* out, RowWriter* writer) const {
  const bool good = read(batch, row, false, state);
  const bool by_column = !share_.is_whole() && !share_.column.empty();
  if (!share_.is_whole() && !in_share(share_, by_column ? state->fields[share_column_].text : joined(state))) {
    ++out->skipped;
    ++out->lines;
  } else if (!good) {
    writer->refuse(1, -1, BadReason::kSeparator, joined(state));
  } else if (!write(*state, writer)) {
    read(batch, row, true, state);  // a number has no text yet
    refuse(state, writer);
  }
}

// False: a value of a list contains the separator.
bool TableRows::read(const TableBatch& batch, int64_t row, bool as_texts, Row* state) const {
  bool good = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (!source.type) continue;
    const bool read = set_field(*source.type, batch.column(i), row, source.is_number && !as_texts, source.split,
                                &state->own[i], &state->fields[i]);
    good &= read || !source.is_needed;
  }
  return good;
}

// The row as a line of the used columns, with their positions in it.
std::string_view TableRows::joined(Row* state) const {
  state->line.clear();
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i].type) continue;
    if (!state->line.empty()) state->line += format_.separator;
    state->fields[i].column = static_cast<int64_t>(state->line.size()) + 1;
    state->line += state->fields[i].text;
  }
  return state->line;
}

bool TableRows::write(const Row& state, RowWriter* writer) const {
  uint32_t* out = writer->room(plan_.words_at_most(state.fields, head_.columns));
  int64_t missing = 0;
  RowPlan::Bad bad{1, -1, BadReason::kMissing, 0};
  if (!plan_.write(state.fields, head_.columns, &out, &missing, &bad)) return false;
  writer->add_missing(missing);
  writer->keep(out);
  return true;
}

// A row that write() does not take, with all its texts.
void TableRows::refuse(Row* state, RowWriter* writer) const {
  uint32_t* out = writer->room(plan_.words_at_most(state->fields, head_.columns));
  int64_t missing = 0;
  RowPlan::Bad bad{1, -1, BadReason::kMissing, 0};
  plan_.write(state->fields, head_.columns, &out, &missing, &bad);
  const std::string_view text = joined(state);
  writer->refuse(state->fields[bad.field].column, bad.slot, bad.reason, text);
}

}  // namespace anabranch::data
