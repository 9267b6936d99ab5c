// The gradients of normalizations as other ops, for second-order gradients.
#pragma once
#include <string>
#include <vector>

#include "ops/declare/second_order.h"

namespace anabranch::nn {

// Statistics over `axes` of X; the vectors Scale and Bias extend along `scale_axis`.
struct Normalized {
  std::vector<int32_t> axes, rest;  // rest: all axes except that of Scale
  int scale_axis;
  float epsilon;
};

// X@GRAD, Scale@GRAD and Bias@GRAD from X, Scale and Y@GRAD; statistics are those of X.
inline void normalized_gradient(second_order::Ops& o, const Normalized& n) {
  const std::string x = o.in("X"), dy = o.in("Y@GRAD");
  const std::string centred = o.sub(x, o.mean(x, n.axes, true));
  const std::string inverse = o.unary("rsqrt", o.scale(o.mean(o.square(centred), n.axes, true), 1, n.epsilon));
  const std::string normal = o.mul(centred, inverse);
  if (o.needed("Scale@GRAD")) o.is("Scale@GRAD", o.sum(o.mul(dy, normal), n.rest, false));
  if (o.needed("Bias@GRAD")) o.is("Bias@GRAD", o.sum(dy, n.rest, false));
  if (!o.needed("X@GRAD")) return;
  const std::string g = o.given("Scale") ? o.binary("elementwise_mul", dy, o.in("Scale"), n.scale_axis) : dy;
  const std::string along = o.mul(normal, o.mean(o.mul(g, normal), n.axes, true));
  o.is("X@GRAD", o.mul(o.sub(o.sub(g, o.mean(g, n.axes, true)), along), inverse));
}

// The axes of X except those from `first` to `last`.
inline std::vector<int32_t> axes_without(int rank, int first, int last) {
  std::vector<int32_t> axes;
  for (int32_t i = 0; i < rank; ++i) {
    if (i < first || i > last) axes.push_back(i);
  }
  return axes;
}

}  // namespace anabranch::nn
