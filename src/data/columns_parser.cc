// Lines of columns: tab- or comma-separated text and the like.
#include "base/error.h"
#include "data/fields_parser.h"

namespace anabranch::data {
namespace {

constexpr size_t kShownBytes = 120;

struct ColumnsCut {
  ColumnsCut(const RowFormat& format, const RowPlan& /*plan*/, const FileHeads& /*heads*/)
      : header(format.header), separator(format.separator) {}

  FileHead head(const FileHeads& heads, std::string_view line, const std::string& path) const {
    std::vector<Field> fields;
    std::string unquoted;
    std::vector<std::string_view> texts;
    const int64_t column = cut_fields(without_line_end(line), separator, &fields, &unquoted);
    AB_CHECK(!column || !header, InvalidArgument, "{}:1:{}: {} in the header: {}", path, column,
             bad_reason_text(BadReason::kQuote), line.substr(0, kShownBytes));
    // A first row whose quotes do not end is a bad row, and says nothing about the number of fields of the others.
    if (!column) {
      for (const Field& field : fields) texts.push_back(field.text);
    }
    return heads.head(texts, path);
  }

  bool operator()(std::string_view line, const FileHead& head, CutLine* out) const {
    if (const int64_t column = cut_fields(line, separator, &out->fields, &out->own)) {
      return out->refuse(static_cast<size_t>(column) - 1, BadReason::kQuote);
    }
    out->got = out->fields.size();
    out->expected = head.fields;
    if (out->got > head.fields) {
      return head.at_least ||
             out->refuse(static_cast<size_t>(out->fields[head.fields].column) - 1, BadReason::kFieldCount);
    }
    return out->got == head.fields || out->refuse(line.size(), BadReason::kFieldCount);
  }

  const bool header;
  const char separator;
};

}  // namespace

std::unique_ptr<RowParser> make_columns_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<FieldsParser<ColumnsCut>>(schema, format);
}

}  // namespace anabranch::data
