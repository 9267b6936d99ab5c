#include "data/table_input.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "data/file_head.h"
#include "data/row_plan.h"
#include "data/schema_text.h"

namespace anabranch::data {
namespace {

struct Held : ArrowArray {
  Held() : ArrowArray{} {}
  Held(const Held&) = delete;
  ~Held() {
    if (release) release(this);
  }
};

// The columns of a schema in a table.
class TableRows {
 public:
  TableRows(const Settings& settings, const ArrowSchema& table, const std::string& path)
      : share_(settings.share),
        format_(parse_schema_text(settings.format)),
        heads_(format_),
        plan_(settings.schema, format_, &heads_) {
    std::vector<std::string_view> names;
    for (int64_t i = 0; i < table.n_children; ++i) names.emplace_back(table.children[i]->name);
    head_ = heads_.head(names, path);
    AB_CHECK(head_.fields <= names.size(), InvalidArgument, "{}: the schema uses column {}, but the table has {}", path,
             head_.fields - 1, names.size());
    sources_.resize(names.size());
    for (const ColumnRule& rule : format_.rules) add(rule, settings.schema, table, names, path);
  }

  void parse(const ArrowArray& batch, Block* out) const {
    RowWriter writer(out);
    std::vector<std::string> own(sources_.size());
    std::vector<Field> fields(sources_.size());
    std::string line;
    for (int64_t row = 0; row < batch.length; ++row) {
      const std::string* fault = read(batch, row, false, &own, &fields);
      if (!share_.is_whole() && !in_share(share_, joined(&fields, &line))) {
        ++out->skipped;
        ++out->lines;
      } else if (fault) {
        writer.refuse(1, -1, BadReason::kSeparator, joined(&fields, &line));
      } else {
        if (write(fields, &writer)) continue;
        // A number has no text yet.
        read(batch, row, true, &own, &fields);
        refuse(&fields, &line, &writer);
      }
    }
  }

 private:
  struct Source {
    std::unique_ptr<ArrowType> type;  // null: no feature uses the column
    char split = 0;
    bool is_number = false;  // of a float column: all features take a number
  };

  void add(const ColumnRule& rule, const Schema& schema, const ArrowSchema& table,
           const std::vector<std::string_view>& names, const std::string& path) {
    for (const ColumnRule& part : rule.parts) add(part, schema, table, names, path);
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
      if (rule.split) source.split = rule.split;
      AB_CHECK(!source.type->is_list() || source.split, InvalidArgument,
               "{}: column {}: the column is not a list (split), got lists", path, names[at]);
      AB_CHECK(!source.type->is_float() || rule.transform->type != Transform::Type::kText, InvalidArgument,
               "{}: column {}: text must be text or integers: 7 and 7.0 differ, got the Arrow type {}", path, names[at],
               source.type->format());
    }
  }

  // The texts of a row. Not null: a value of a list contains the separator.
  const std::string* read(const ArrowArray& batch, int64_t row, bool as_texts, std::vector<std::string>* own,
                          std::vector<Field>* fields) const {
    const std::string* fault = nullptr;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Source& source = sources_[i];
      if (!source.type) continue;
      Field& field = (*fields)[i];
      field.is_number =
          source.is_number && !as_texts && source.type->number(*batch.children[i], row + batch.offset, &field.number);
      if (field.is_number) {
        field.text = "0";
        continue;
      }
      try {
        field.text = source.type->text(*batch.children[i], row + batch.offset, source.split, &(*own)[i]);
      } catch (const Error&) {
        field.text = {};
        fault = &(*own)[i];
      }
    }
    return fault;
  }

  // The row as a line of the used columns, with their positions in it.
  std::string_view joined(std::vector<Field>* fields, std::string* line) const {
    line->clear();
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].type) continue;
      if (!line->empty()) *line += format_.separator;
      (*fields)[i].column = static_cast<int64_t>(line->size()) + 1;
      *line += (*fields)[i].text;
    }
    return *line;
  }

  bool write(const std::vector<Field>& fields, RowWriter* writer) const {
    uint32_t* out = writer->room(plan_.words_at_most(fields, head_.columns));
    int64_t missing = 0;
    RowPlan::Bad bad{1, -1, BadReason::kMissing, 0};
    if (!plan_.write(fields, head_.columns, &out, &missing, &bad)) return false;
    writer->add_missing(missing);
    writer->keep(out);
    return true;
  }

  // A row that write() does not take, with all its texts.
  void refuse(std::vector<Field>* fields, std::string* line, RowWriter* writer) const {
    uint32_t* out = writer->room(plan_.words_at_most(*fields, head_.columns));
    int64_t missing = 0;
    RowPlan::Bad bad{1, -1, BadReason::kMissing, 0};
    plan_.write(*fields, head_.columns, &out, &missing, &bad);
    const std::string_view text = joined(fields, line);
    writer->refuse((*fields)[bad.field].column, bad.slot, bad.reason, text);
  }

  const Settings::Share share_;
  const RowFormat format_;
  FileHeads heads_;
  const RowPlan plan_;
  FileHead head_;
  std::vector<Source> sources_;  // of each column of the table
};

class TableInput final : public Input {
 public:
  TableInput(const Settings& settings, const std::string& path)
      : file_(settings.open_table(path)), rows_(settings, file_->schema(), path) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0) bytes_ = static_cast<int64_t>(info.st_size);
  }

  bool claim(Chunk* chunk) override {
    auto batch = std::make_shared<Held>();
    if (!file_->next(batch.get())) return false;
    chunk->index = chunk_++;
    taken_ += batch->length;
    chunk->table = std::move(batch);
    return true;
  }

  void finish(Chunk* chunk, Block* out) const override {
    const auto batch = std::exchange(chunk->table, nullptr);
    rows_.parse(*batch, out);
    out->bytes = file_->rows() > 0 ? bytes_ * batch->length / file_->rows() : 0;
  }

  int64_t consumed() const override { return file_->rows() > 0 ? bytes_ * taken_ / file_->rows() : 0; }

 private:
  const std::unique_ptr<TableFile> file_;
  const TableRows rows_;
  int64_t bytes_ = 0, taken_ = 0, chunk_ = 0;
};

}  // namespace

const char* table_kind(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  char start[6] = {};
  if (!file || std::fread(start, 1, sizeof start, file.get()) < sizeof start) return nullptr;
  const std::string_view text(start, sizeof start);
  return text.substr(0, 4) == "PAR1" ? "Parquet" : text == "ARROW1" ? "Arrow" : nullptr;
}

std::unique_ptr<Input> table_input(const Settings& settings, const std::string& path, const char* kind) {
  AB_CHECK(is_schema_text(settings.format), InvalidArgument,
           "{} is a file of {}, which has columns instead of lines: set_format must be given an anabranch.Schema", path,
           kind);
  AB_CHECK(settings.cache_folder.empty(), Unsupported, "{}: files of {} have no cache: remove set_cache", path, kind);
  AB_CHECK(settings.open_table != nullptr, Unsupported, "{}: this program reads no files of {}", path, kind);
  return std::make_unique<TableInput>(settings, path);
}

}  // namespace anabranch::data
