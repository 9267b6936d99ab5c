// How the ops of ops/math declare their device kernels; see also launch.h: numbers that may be tensors, elements paired
// in memory order, predicates over whole tensors.
#pragma once
#include "base/error.h"
#include "ops/device/args_math.h"
#include "ops/device/launch.h"

namespace anabranch::device {

// A tensor that holds one number of type T.
template <class T> DeviceIn number_of(const Tensor& t) {
  AB_CHECK(t.numel() == 1, ShapeMismatch, "a number must have shape [1], got {}", t.shape().str());
  return {t.data<T>(), t.bytes()};
}

template <class T> void put(ScalarArgs& a, int at, T number) {
  a.p[at] = static_cast<double>(number);
  if constexpr (std::is_integral_v<T>) a.whole[at] = number;
}

inline void launch_scalar(const DeviceContext& c, ab_kernel kernel, ScalarArgs& a, const Tensor& x, Tensor& y) {
  a.x = operand(x);
  a.y = operand(y);
  a.n = x.numel();
  c.launch(kernel, a);
}

// Out = f(X, numbers), by "scalar/<function>". numbers(c, &a) sets them.
template <class T, class Numbers> Kernel scalar(const char* function, In x, Out out, Numbers numbers) {
  return [kernel = kernel_of<T>(std::string("scalar/") + function), x, out, numbers](const DeviceContext& c) {
    ScalarArgs a{};
    numbers(c, a);
    launch_scalar(c, kernel, a, c[x], c[out]);
  };
}

// One axis that all operands traverse without a gap.
template <int kOperands> Axes<kOperands> one_line(int64_t n) {
  Axes<kOperands> axes{};
  axes.rank = 1;
  axes.extent[0] = n;
  for (int k = 0; k < kOperands; ++k) axes.stride[k][0] = 1;
  return axes;
}

// out = f(x, y) for tensors of equal size; out may alias one of them.
inline void launch_pairs(const DeviceContext& c, ab_kernel kernel, const Tensor& x, const Tensor& y, Tensor& out) {
  c.launch(kernel, BinaryArgs{operand(x), operand(y), operand(out), one_line<3>(x.numel()), {}});
}

// Out = f(X, Y) of that kind, by the kernel of this stem.
DTypeFactory pairs(std::string stem);
// Out = whether some element of X satisfies the predicate or, with `none`, whether no element does; by
// "question/<question>".
DTypeFactory question(const char* question, bool none);

}  // namespace anabranch::device
