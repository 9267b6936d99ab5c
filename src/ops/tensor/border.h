// The border that pad and pad2d add to tensors.
#pragma once
#include <array>

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"

namespace anabranch::tensor {

struct Border {
  std::array<int64_t, kMaxRank> before{}, after{};
};

inline Shape padded(const Shape& x, const Border& b) {
  Shape out = x;
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] >= 0) out.set(i, x[i] + b.before[i] + b.after[i]);
  }
  return out;
}

// The gradient of X@GRAD is padded with zeros, for any padding of X.
inline void pad_with_zeros(GradContext& g) {
  second_order::linear(g);
  if (!g.ops.empty()) g.ops.back()->attrs["pad_value"] = 0.0f;
}

}  // namespace anabranch::tensor
