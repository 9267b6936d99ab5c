// Shared by the lookups in tables on servers.
#pragma once
#include "ops/distributed/shards.h"

namespace anabranch::distributed {

// The shape of a row for each of Ids: a last axis of 1 is replaced by the row, otherwise the row is appended.
// InvalidArgument.
Shape found_shape(const Meta& ids, int64_t width, bool last_is_one);

// Checks that table_names, endpoints, height_sections, Ids and Outputs match. InvalidArgument.
void check_remote_table(const InferContext& c);

struct RemoteReading {
  bool has_padding = false;
  int64_t padding = -1;  // reads as zeros
  bool trains = false;   // keys of a growable table get rows
};
// Outputs[i] = the rows of Ids[i]: one request per server for the distinct ids of all Ids.
Kernel remote_rows_kernel(const KernelArgs& op, const RemoteReading& how);

}  // namespace anabranch::distributed
