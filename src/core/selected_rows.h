// A sparse gradient: rows of a table of `height` rows (kUnknown: of a table that grows). Row ids may repeat (their
// values add up) and are in no particular order, but always in a fixed one.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace anabranch {

struct SelectedRows {
  std::vector<int64_t> rows;
  int64_t height = 0;
  Tensor value;  // [rows.size(), ...]
};

// InvalidArgument unless there is a row of values for each id, and the height is one: users set these one by one.
void check_rows(const SelectedRows& rows);

// One entry per distinct id, ascending; entries of one id are added in their order of appearance.
void merge_rows(const SelectedRows& in, SelectedRows* out);

}  // namespace anabranch
