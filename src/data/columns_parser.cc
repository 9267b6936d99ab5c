// Lines of columns: tab- or comma-separated text and the like.
#include "base/error.h"
#include "data/fields.h"
#include "data/file_head.h"
#include "data/row_plan.h"

namespace anabranch::data {
namespace {

constexpr size_t kShownBytes = 120;

class ColumnsParser final : public RowParser {
 public:
  ColumnsParser(const Schema& schema, const RowFormat& format)
      : heads_(format), plan_(schema, format, &heads_), separator_(format.separator), header_(format.header) {}

  FileHead head(std::string_view line, const std::string& path) const override {
    std::vector<Field> fields;
    std::string unquoted;
    std::vector<std::string_view> texts;
    const int64_t column = cut_fields(without_line_end(line), separator_, &fields, &unquoted);
    AB_CHECK(!column || !header_, InvalidArgument, "{}:1:{}: {} in the header: {}", path, column,
             bad_reason_text(BadReason::kQuote), line.substr(0, kShownBytes));
    // A first row whose quotes do not end is a bad row, and says nothing about the number of fields of the others.
    if (!column) {
      for (const Field& field : fields) texts.push_back(field.text);
    }
    return heads_.head(texts, path);
  }

  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    std::vector<Field> fields;
    std::string unquoted;
    bool skip = header_ && out->chunk == 0 && out->lines == 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (skip) {
        skip = false;
        ++out->lines;
        continue;
      }
      row(line, head, &fields, &unquoted, &writer);
    }
  }

 private:
  using Bad = RowPlan::Bad;

  void row(std::string_view whole, const FileHead& head, std::vector<Field>* fields, std::string* unquoted,
           RowWriter* writer) const {
    const std::string_view line = without_line_end(whole);
    Bad bad{1, -1, BadReason::kFieldCount, 0};
    if (const int64_t column = cut_fields(line, separator_, fields, unquoted)) {
      return writer->refuse(column, -1, BadReason::kQuote, whole);
    }
    const bool further = fields->size() > head.fields;
    if (further ? !head.at_least : fields->size() < head.fields) {
      const int64_t column = further ? (*fields)[head.fields].column : static_cast<int64_t>(line.size()) + 1;
      return writer->refuse_fields(column, fields->size(), head.fields, whole);
    }
    uint32_t* out = writer->room(plan_.words_at_most(*fields, head.columns));
    int64_t missing = 0;
    if (!plan_.write(*fields, head.columns, &out, &missing, &bad)) {
      return writer->refuse(bad.column, bad.slot, bad.reason, whole);
    }
    writer->add_missing(missing);
    writer->keep(out);
  }

  FileHeads heads_;
  RowPlan plan_;
  char separator_;
  bool header_;
};

}  // namespace

std::unique_ptr<RowParser> make_columns_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<ColumnsParser>(schema, format);
}

}  // namespace anabranch::data
