// Schemas of other texts than MultiSlot, a few lines each:
//
//   columns tab                        libsvm
//   label = 0                          label = label
//   dense = 1-13 log                   ids = index
//   C* = 14-39 hash 1000001            values = value
//
// The first line names the format: "columns" with tab, comma, semicolon, pipe or space, and "header" if the first
// line of each file holds names; or "libsvm". Each other line assigns columns, counted from 0, to a slot. A name with a
// star stands for one slot per column: C1, C2, ... Options after the columns:
//   hash N     ids: the bytes of the column, hashed with its number, modulo N; other id columns hold numbers
//   split C    ids: a list, split at this character
//   missing V  the value of an empty column, 0 by default. With "hash" an empty column is a value like others
//   log        floats: ln(1 + x), and 0 for x below 0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/row_parser.h"

namespace anabranch::data {

struct ColumnRule {
  std::string slot;
  std::vector<int64_t> columns;  // of libsvm: none
  std::string part;              // of libsvm: label, index, value
  uint64_t hash = 0;             // 0: none
  char split = 0;                // 0: none
  double missing = 0;
  bool log = false;
};

struct RowFormat {
  bool libsvm = false, header = false;
  char separator = '\t';
  std::vector<ColumnRule> rules;
};

// InvalidArgument names the line that cannot be parsed.
RowFormat parse_row_format(const std::string& text);

// A number in [0, 2^64) for these bytes: the same on every machine and in every version of the cache.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed);

std::unique_ptr<RowParser> make_columns_parser(const Schema& schema, const RowFormat& format);
std::unique_ptr<RowParser> make_libsvm_parser(const Schema& schema, const RowFormat& format);

}  // namespace anabranch::data
