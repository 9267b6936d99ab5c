// Appends an op to a block, the only way to do so: checks its slots and attributes against the schema, adds defaults,
// creates missing output variables, and infers kinds, dtypes and shapes. Invalid input raises before anything changes.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ir/program.h"
#include "opdef/check_op.h"

namespace anabranch {

struct OpSpec {
  std::string type;
  std::vector<ir::Slot> inputs, outputs;
  AttrMap attrs;
};

// index: position in the block; empty: at the end. Missing output variables are created in the block. The op gets
// defaults for missing attributes, the attribute op_role if it has none, and the current source location.
ir::OpRef append_op(ir::Block& block, OpSpec spec, std::optional<size_t> index = {});

// The version of a variable that an op reads, if it does not record one (ir/versions.h); absent: the latest.
using VersionOf = std::function<std::optional<int>(const std::string& var)>;
// Shape inference of one op against the variables of its block: writes the metas of its outputs back.
void infer_op(ir::Block& block, const ir::Op& op, const VersionOf& version_of = {});

}  // namespace anabranch
