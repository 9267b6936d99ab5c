// Checks of integer inputs used as indices. Always enabled: an invalid id would read or write foreign memory.
#pragma once
#include <cstdint>
#include <string>

#include "opdef/kernel_context.h"

namespace anabranch {

// Raises InvalidArgument for the first id outside [0, height). `allowed` (>= 0) is accepted too; -1 accepts no other
// id. what: "sequence_scatter: Ids".
void check_ids(const char* what, const int64_t* ids, int64_t n, int64_t height, int64_t allowed = -1);

// Names the ids of one feature in error messages.
struct IdSource {
  std::string op, feature, table;  // type of the op, names of the variables
  // From the slots Ids and W of `op`.
  static IdSource of(const ir::Op& op);
};

// Like check_ids; the message names feature, sample (sequence, or index on the first axis), id and table. `ids` are the
// values of `t` as int64.
void check_table_ids(const IdSource& source, const Tensor& t, const int64_t* ids, int64_t height, int64_t allowed);

// An integer tensor (int32 or int64) as int64: itself, or converted into scratch.
const int64_t* as_int64(const Tensor& t, Tensor* scratch);

}  // namespace anabranch
