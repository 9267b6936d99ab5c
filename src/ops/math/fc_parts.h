// Parts of fully connected layers in one op: the check of the bias, and the loop of the activation.
#pragma once
#include "opdef/op_def.h"
#include "opdef/tile.h"
#include "ops/declare/declare.h"
#include "ops/math/flat.h"

namespace anabranch::math {

// The loop of the activation op, or of its gradient, which computes X@GRAD from Out and Out@GRAD.
inline const TileOp* activation(const KernelArgs& op, const char* suffix) {
  const auto& name = op.attr<std::string>("activation");
  if (name.empty()) return nullptr;
  AB_CHECK(find_op(name).is_activation(), InvalidArgument, "activation must be an op whose gradient reads Out, got {}",
           name);
  return find_op(name + suffix).tile();
}

// The biases that elementwise_add accepts, as far as the result keeps the product's shape: a loaded parameter may have
// one element instead of one per column.
inline void check_bias(const InferContext& c) {
  if (!c.has_in("Bias")) return;
  const Shape& bias = c.in("Bias").shape;
  const int64_t columns = c.in("Y").shape[1];
  bool fits = bias.rank() >= 1 && bias.rank() <= c.in("X").shape.rank();
  for (int i = 0; fits && i + 1 < bias.rank(); ++i) fits = bias[i] == 1;
  if (fits) fits = bias[bias.rank() - 1] == 1 || compatible(bias.slice(bias.rank() - 1, bias.rank()), Shape{columns});
  AB_CHECK(fits, ShapeMismatch, "Bias must have {} elements in its last axis, or one, got {}", columns, bias.str());
}

}  // namespace anabranch::math
