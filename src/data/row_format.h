// Schemas of other texts than MultiSlot, a few lines each:
//
//   columns tab                        libsvm
//   label = 0                          label = label
//   dense = 1-13 log                   ids = index
//   C* = 14-39 hash 1000001            values = value
//
// The first line names the format: "columns" with tab, comma, semicolon, pipe or space, "header" if the first line of
// each file holds names, and "ragged" if lines may have further fields; or "libsvm". Each other line assigns columns,
// by names of the header or numbers from 0, to a slot. A slot with a star stands for one per column: C1, C2, ...
// Options after the columns:
//   hash N      ids: the bytes of the column and its salt, hashed, modulo N; other id columns hold numbers
//   salt NAME   of a hash; the name or number of the column by default
//   split C     ids: a list, split at this character
//   missing V   the value of an empty column, 0 by default. With "hash" an empty column is a value like others
//   log         floats: ln(1 + x), and 0 for x below 0. Of "missing" and "log", the one written first comes first
//   required    a line with an empty column is a bad row; so it is for dense ids that are not hashed
//   range A B   a line with a value below A or above B is a bad row
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/row_parser.h"
#include "data/transform.h"

namespace anabranch::data {

// The kinds of lines: fields between separators; index:value pairs; the slots of MultiSlot text.
enum class Lines : uint8_t { kColumns, kLibsvm, kMultiSlot };

struct ColumnRef {
  int64_t number = -1;  // -1: by name
  std::string name;
  uint64_t salt = 0;  // of its hash
};

struct ColumnRule {
  std::string slot;
  std::vector<ColumnRef> columns;  // of libsvm: none
  std::string part;                // of libsvm: label, index, value
  uint64_t hash = 0;               // 0: none
  char split = 0;                  // 0: none
  int64_t values = 0;              // of a list that is split, in each column; 0: any number
  double missing = 0;
  bool log = false;
  bool has_missing = false, missing_last = false;  // an option says so; after "log"
  bool required = false, ranged = false;
  double low = 0, high = 0;  // of the range

  // Of a schema (data/schema_text.h), instead of the options above other than split and required.
  std::shared_ptr<const Transform> transform;
  std::vector<ColumnRule> parts;  // of a cross: each has one column
  uint64_t cross_salt = 0;        // of a cross, whose number of ids is `hash`
};

struct RowFormat {
  Lines lines = Lines::kColumns;
  bool header = false, ragged = false;
  bool is_schema = false;
  char separator = '\t';
  std::vector<std::string> slots;  // of MultiSlot lines, in their order; the columns of a schema
  std::vector<ColumnRule> rules;
};

// InvalidArgument names the line that cannot be parsed.
RowFormat parse_row_format(const std::string& text);

// The salt of a named column, or of a table that columns share.
uint64_t salt_of(std::string_view name);
// The id in [0, buckets) of a hash, or of a text.
uint64_t hash_to_id(uint64_t hash, uint64_t buckets);
uint64_t hashed_id(std::string_view text, uint64_t salt, uint64_t buckets);

// A number in [0, 2^64) for these bytes: the same on every machine and in every version of the cache.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed);

std::unique_ptr<RowParser> make_columns_parser(const Schema& schema, const RowFormat& format);
std::unique_ptr<RowParser> make_libsvm_parser(const Schema& schema, const RowFormat& format);
// Of schemas: a column is a slot, or is made of the pairs of a line.
std::unique_ptr<RowParser> make_slots_parser(const Schema& schema, const RowFormat& format);
std::unique_ptr<RowParser> make_pairs_parser(const Schema& schema, const RowFormat& format);

}  // namespace anabranch::data
