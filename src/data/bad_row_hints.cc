// The likely cause of a malformed line, judged by the text at the place of the error.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "data/block.h"

namespace anabranch::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// From the column on, without a quote in front.
std::string_view text_at(const BadRow& row) {
  const auto at = static_cast<size_t>(std::max<int64_t>(row.column - 1, 0));
  std::string_view text = std::string_view(row.text).substr(std::min(at, row.text.size()));
  if (text.starts_with('"')) text.remove_prefix(1);
  return text;
}

bool is_one_of(std::string_view field, std::initializer_list<std::string_view> words) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return std::equal(field.begin(), field.end(), word.begin(), word.end(), same);
  });
}

const char* number_hint(std::string_view text, bool integer) {
  const std::string_view field = text.substr(0, text.find_first_of(",;\t|\"\r"));
  const std::string_view number = field.substr(field.starts_with('-') || field.starts_with('+'));
  const size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  const char after = digits < number.size() ? number[digits] : '\0';
  if (field.starts_with(' ') || field.ends_with(' ')) return "a number must have no spaces around it";
  if (is_one_of(field, {"na", "n/a", "nan", "null", "none", "nil", "?", "-", "\\n"})) {
    return "a missing value is an empty field, for which a step or option \"missing\" gives a value";
  }
  if (is_one_of(field, {"true", "false", "yes", "no"})) return "write 1 and 0, or read the column as text";
  if (digits > 0 && digits == number.size() && text.size() > field.size() && text[field.size()] == ',') {
    return "a number has a decimal point, not a comma, and no separators of thousands";
  }
  if (digits > 0 && (after == '-' || after == '/')) {
    return "a date must be converted to a number, or be read as text, such as Schema.text(column).date(\"weekday\")";
  }
  if (integer && digits > 0 && after == '.') return "an integer has no decimal point: read such a column as numbers";
  const bool unit = digits > 0
                        ? after == '%'
                        : number.size() > 1 && (number[0] == '$' || (number[0] & 0x80)) && is_digit(number.back());
  return unit ? "a number must have no unit or currency" : "";
}

}  // namespace

const char* bad_row_hint(const BadRow& row) {
  switch (row.reason) {
    case BadReason::kNotFloat: return number_hint(text_at(row), false);
    case BadReason::kNotId: return number_hint(text_at(row), true);
    case BadReason::kCountNotNumber:
      return row.text.find_first_of(",;|") == std::string::npos
                 ? ""
                 : "set_format says that lines are something else than MultiSlot text, such as CSV";
    case BadReason::kFieldCount:
      if (row.text.empty()) return "the line is empty: remove it";
      return row.got == 1 ? "the separator of the format may be another than that of the file" : "";
    case BadReason::kQuote: return "a quoted field ends in its line, and a quote in it is written twice";
    case BadReason::kLineTooLong: return "its end may be missing: lines end with a line feed";
    case BadReason::kDate:
      return "a date is 2024-01-05, 2024-01-05T13:05:00 or seconds since 1970; date(part, others=True) gives other "
             "texts "
             "the id 0";
    case BadReason::kVocabulary: return "vocabulary(words, others=True) gives such texts the id 0";
    default: return "";
  }
}

}  // namespace anabranch::data
