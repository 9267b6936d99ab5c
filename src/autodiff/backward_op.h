// An op of the backward part that does not come from a gradient function.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/op.h"

namespace anabranch {

inline ir::OpRef backward_op(std::string type, std::vector<ir::Slot> inputs, std::vector<ir::Slot> outputs) {
  auto op = std::make_shared<ir::Op>();
  op->type = std::move(type);
  op->inputs = std::move(inputs);
  op->outputs = std::move(outputs);
  op->attrs["op_role"] = int32_t{ir::role::kBackward};
  return op;
}

}  // namespace anabranch
