// The file of a growable table, little endian: the header below, then its rows: key (int64), time it was last seen
// (uint32), numbers (float32): row, moments and, of a table that evicts the rarest rows, how often it was seen. Tables
// write them by ascending key.
#pragma once
#include <cstdint>
#include <string>

#include "sparse/table_options.h"

namespace anabranch::sparse {

struct TableHeader {
  char magic[8];
  int64_t width, moments, rows, clock, seed, max_bytes, expire_after, admit_count;
  // Bit 0: evicts; bits 1 and 2: Policy; bit 8: rows are created by updates; bit 9: timed; bits 10 and 11: Start; bits
  // 16 to 23: 1 + RowRule, or 0 if `moments` is its number, as in older files.
  int64_t rules;
  float low, high, moment_start, admit_probability;

  Policy policy() const { return static_cast<Policy>(rules >> 1 & 3); }
  Start start() const { return static_cast<Start>(rules >> 10 & 3); }
  RowRule rule() const { return static_cast<RowRule>(rules >> 16 & 255 ? (rules >> 16 & 255) - 1 : moments); }
  int64_t state() const;   // moments of a row
  int64_t floats() const;  // per row
  size_t row_bytes() const;
};
static_assert(sizeof(TableHeader) == 96);

TableHeader header_of(const TableOptions& options, bool with_moments, int64_t rows, int64_t clock);
TableOptions options_of(const TableHeader& header);
// InvalidArgument unless it is a plausible header of a table; `where` names the file.
void check_header(const TableHeader& header, const std::string& where);

}  // namespace anabranch::sparse
