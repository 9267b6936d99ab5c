// What look-ups in tables that live on servers have in common.
#pragma once
#include "ops/distributed/pieces.h"

namespace anabranch::distributed {

// A row for each of Ids: an axis of 1 at the end becomes the row, or the row follows the ids. InvalidArgument.
Shape found_shape(const Meta& ids, int64_t width, bool last_is_one);

// table_names, endpoints, height_sections and Ids fit each other, and Outputs are as many. InvalidArgument.
void check_remote_table(const InferContext& c);

struct RemoteReading {
  bool has_padding = false;
  int64_t padding = -1;  // reads as zeros
  bool trains = false;   // keys of a table that grows get rows
};
// Outputs[i] = the rows of Ids[i]: each server is asked once, for the distinct ones of all Ids.
Kernel remote_rows_kernel(const KernelArgs& op, const RemoteReading& how);

}  // namespace anabranch::distributed
