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
      fields->push_back({line.substr(at, end - at), column});
      at = end;
    }
    if (at == line.size()) return 0;
    ++at;
  }
}

}  // namespace anabranch::data
