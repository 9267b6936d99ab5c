// Tests whether two tensors are equal.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::math::equal_reduce_op {
namespace {

// As in Fluid 1.8.5, numbers that differ by at most 1e-8 are equal.
template <class T> bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return (std::abs(a - b) < static_cast<T>(1e-8)) | (a == b);
  return a == b;
}

// Compares blocks and stops after the first one that differs.
template <class T> bool same_run(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t n) {
  constexpr int64_t kBlock = 4096;
  int32_t differ = 0;
  for (int64_t at = 0; at < n && !differ; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    with_steps(x_step, y_step, [=, &differ](auto sx, auto sy) {
      in_wide_run(count, [=, &differ] {
        int32_t any = 0;
        for (int64_t i = at; i < at + count; ++i) any |= static_cast<int32_t>(!same(x[i * sx], y[i * sy]));
        differ = any;
      });
    });
  }
  return differ == 0;
}

AB_OP(equal_reduce)
    .doc("Out = whether all elements of X and Y are equal; floating-point numbers up to 1e-8.")
    .in("X", "[...] numbers")
    .in("Y", "[...] like X, with a shape that broadcasts to that of X, without more axes")
    .out("Out", "[1] bool")
    .attr<int32_t>("axis", -1, "axis of X with which the first axis of Y is aligned; -1 aligns the last axes")
    .infer([](InferContext& c) {
      check_same_dtype(c, "X", "Y");
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
      AB_CHECK(y.rank() <= x.rank(), InvalidArgument, "Y must not have more axes than X, got {} and {}", y.str(),
               x.str());
      broadcast_shape(x, y, c.attr<int32_t>("axis"));
      c.set_out("Out", scalar_shape(), DType::kBool);
    })
    .no_grad(kNotDifferentiable)
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const Shape whole = broadcast_shape(c[x].shape(), c[y].shape(), axis);
        const auto loop = broadcast_loop(whole, c[x].shape(), c[y].shape(), axis);
        const auto step = loop.inner_strides();
        const T *xs = c[x].data<T>(), *ys = c[y].data<T>();
        std::atomic<bool> differ{false};
        loop.run(c, kCheapGrain, [&](const auto& at, int64_t n) {
          if (!same_run(xs + at[1], step[1], ys + at[2], step[2], n)) differ.store(true, std::memory_order_relaxed);
        });
        *c[out].mutable_data<bool>() = !differ.load(std::memory_order_relaxed);
      };
    });

}  // namespace
}  // namespace anabranch::math::equal_reduce_op
