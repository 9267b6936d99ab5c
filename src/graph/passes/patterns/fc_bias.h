// The bias of a fully connected layer.
#pragma once
#include "graph/graph.h"

namespace anabranch {

// Whether elementwise_add adds one number to each column of the product of mul, of which `y` is the matrix.
inline bool adds_to_columns(const GraphNode& add, const ir::Var& bias, const GraphNode& mul, const ir::Var& y) {
  const auto axis = add.op->attr<int32_t>("axis");
  return bias.shape.rank() == 1 && bias.shape[0] == y.shape[1] && bias.shape[0] > 0 &&
         (axis == -1 || axis == mul.op->attr<int32_t>("x_num_col_dims"));
}

}  // namespace anabranch
