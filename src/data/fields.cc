#include "data/fields.h"

#include <cstring>

namespace anabranch::data {
namespace {

// The text after the quote that ends the field, or npos.
size_t unquote(std::string_view line, size_t at, std::string* unquoted) {
  for (++at; at < line.size(); ++at) {
    if (line[at] == '"') {
      if (at + 1 == line.size() || line[at + 1] != '"') return at + 1;
      ++at;
    }
    *unquoted += line[at];
  }
  return std::string_view::npos;
}

}  // namespace

int64_t cut_fields(std::string_view line, char separator, std::vector<Field>* fields, std::string* unquoted) {
  fields->clear();
  unquoted->clear();
  unquoted->reserve(line.size());  // its bytes must not move, because fields point to them
  size_t at = 0;
  for (;;) {
    const auto column = static_cast<int64_t>(at) + 1;
    if (at < line.size() && line[at] == '"' && separator != '\t') {
      const size_t begin = unquoted->size();
      at = unquote(line, at, unquoted);
      if (at == std::string_view::npos || (at < line.size() && line[at] != separator)) return column;
      fields->push_back({std::string_view(*unquoted).substr(begin), column});
    } else {
      const auto* begin = line.data() + at;
      const auto* found = static_cast<const char*>(std::memchr(begin, separator, line.size() - at));
      const size_t end = found ? static_cast<size_t>(found - line.data()) : line.size();
      fields->push_back({.text = line.substr(at, end - at), .column = column, .padded = true});
      at = end;
    }
    if (at == line.size()) return 0;
    ++at;
  }
}

bool read_count(std::string_view text, int64_t* count, BadReason* reason) {
  constexpr size_t kMostDigits = 18;
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative);
  *count = 0;
  *reason = BadReason::kCountZero;
  if (text.empty()) {
    *reason = BadReason::kLineEnds;
  } else if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    *reason = BadReason::kCountNotNumber;
  } else if (negative) {
    *reason = BadReason::kCountNegative;
  } else if (digits.size() > kMostDigits) {
    *reason = BadReason::kCountTooLarge;
  } else {
    for (const char digit : digits) *count = *count * 10 + (digit - '0');
  }
  return *count > 0;
}

std::string shown_start(std::string_view text) {
  constexpr size_t kMostBytes = 120;
  std::string shown = "\"";
  shown += text.substr(0, kMostBytes);
  return shown += text.size() > kMostBytes ? "\"..." : "\"";
}

}  // namespace anabranch::data
