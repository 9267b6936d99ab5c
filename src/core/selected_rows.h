// A sparse gradient: rows of a table of `height` rows (kUnknown: of a growable table). Row ids may repeat (their values
// add up) and have no particular order, but always a fixed one.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace anabranch {

struct SelectedRows {
  std::vector<int64_t> rows;
  int64_t height = 0;
  Tensor value;  // [rows.size(), ...]
};

// InvalidArgument unless there is one row of values per id and the height is valid: users set these separately.
void check_rows(const SelectedRows& rows);

// One entry per distinct id, ascending; entries of one id are added in their order of appearance.
void merge_rows(const SelectedRows& in, SelectedRows* out);

}  // namespace anabranch
