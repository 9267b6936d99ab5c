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
  int64_t rules;  // bit 0: evicts; bits 1 and 2: Policy; bit 8: rows are created by updates; bit 9: timed
  float low, high, moment_start, admit_probability;

  Policy policy() const { return static_cast<Policy>(rules >> 1 & 3); }
  int64_t floats() const;  // per row
  size_t row_bytes() const;
};
static_assert(sizeof(TableHeader) == 96);

TableHeader header_of(const TableOptions& options, int64_t moments, int64_t rows, int64_t clock);
TableOptions options_of(const TableHeader& header);
// InvalidArgument unless it is a plausible header of a table; `where` names the file.
void check_header(const TableHeader& header, const std::string& where);

}  // namespace anabranch::sparse
