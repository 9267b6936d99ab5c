// Ops that weight the gradient of a replica's loss by its share of the elements that the loss counts.
#pragma once
#include "ops/declare/declare.h"

namespace anabranch {

inline void loss_weight(OpDef& def) {
  def.in_optional_list("Counted", "the input of the loss's mean on every active replica; only its shape is read")
      .in_optional("X", "[1] float, the gradient to weight")
      .out("Out", "[1] float")
      .attr<int32_t>("replica", 0, "index of this replica")
      .attr<int32_t>("active", 1, "number of replicas with rows")
      .attr<int32_t>("dtype", 5, "id of the dtype of Out")
      .infer([](InferContext& c) {
        if (c.has_in("X")) return c.same_as("Out", "X");
        c.set_out("Out", Shape{1}, dtype_from_number(c.attr<int32_t>("dtype")));
      })
      .no_grad("applies to gradients");
}

}  // namespace anabranch
