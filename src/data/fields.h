// The fields of a line: text between separators. A field may be quoted ("a,b", "" for a quote) unless the separator is
// a tab; a quoted field ends within its line. Parsers of rows and statistics of files share it. And the counts of
// MultiSlot text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/block.h"

namespace anabranch::data {

struct Field {
  std::string_view text;
  int64_t column;  // byte at which it starts, from 1
  // Of a table: the value itself, where features take it as a number only. The text is not empty then, and not valid.
  bool is_number = false;
  float number = 0;
  bool padded = false;  // kTextPadding readable bytes follow the text (data/number.h)
};

// The line without its carriage return.
inline std::string_view without_line_end(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Replaces *fields; they point into the line, or into *unquoted. 0, or the column of the field whose quotes are wrong.
int64_t cut_fields(std::string_view line, char separator, std::vector<Field>* fields, std::string* unquoted);

// The number before the values of a slot of MultiSlot text: digits, at least 1. False: *reason says what is wrong.
bool read_count(std::string_view text, int64_t* count, BadReason* reason);

// The start of a text in quotes, for messages.
std::string shown_start(std::string_view text);

}  // namespace anabranch::data
