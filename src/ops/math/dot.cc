// Out[i] = X[i] . Y[i]: inner products of rows.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_pair.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wrapping.h"

namespace anabranch::math::dot_op {
namespace {

Shape dot_shape(const Shape& x) {
  Shape out = x;
  AB_CHECK(x.rank() == 1 || x.rank() == 2, ShapeMismatch, "X must have one or two axes, got {}", x.str());
  out.set(x.rank() - 1, 1);
  return out;
}

template <class T> T row_dot(const T* x, const T* y, int64_t width) {
  if constexpr (std::is_floating_point_v<T>) {
    return sum_of<T>(width, [=](int64_t k) { return x[k] * y[k]; });
  } else {
    using W = Wrapping<T>;
    W sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += static_cast<W>(x[k]) * static_cast<W>(y[k]);
    return static_cast<T>(sum);
  }
}

AB_OP(dot)
    .doc("Out = the inner products of the rows of X and Y.")
    .in("X", "[d] or [n, d] numbers")
    .in("Y", "like X")
    .out("Out", "[1] or [n, 1]")
    .infer([](InferContext& c) {
      check_same_shape(c, "X", "Y");
      c.set_out("Out", dot_shape(c.in("X").shape), c.in("X").dtype);
    })
    .grad_reads({"X", "Y"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const int64_t width = c[x].shape()[c[x].shape().rank() - 1], rows = c[out].numel();
        const T *xs = c[x].data<T>(), *ys = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)),
                        [=](int64_t r) { to[r] = row_dot(xs + r * width, ys + r * width, width); });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("dot"), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) {
        const Shape& s = c[x].shape();
        device::PairArgs a = device::pair_of(c[x], c[y], c[out].numel(), s[s.rank() - 1]);
        a.out = device::operand(c[out]);
        c.launch(kernel, a);
      };
    });

AB_GRAD(dot)
    .doc("X@GRAD = Out@GRAD Y, Y@GRAD = Out@GRAD X, row by row.")
    .grad_lod("X@GRAD", "X")
    .grad_lod("Y@GRAD", "Y")
    .grad(second_order::bilinear("X", "Y"))
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const int64_t rows = c[dout].numel(), width = rows ? c[x].numel() / rows : 0;
        const T* factor = c[dout].data<T>();
        const auto spread = [&](const T* from, T* to) {
          c.parallel_each(rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)), [=](int64_t r) {
            for (int64_t i = r * width; i < (r + 1) * width; ++i) to[i] = factor[r] * from[i];
          });
        };
        if (c.needs(dx)) spread(c[y].data<T>(), c[dx].mutable_data<T>());
        if (c.needs(dy)) spread(c[x].data<T>(), c[dy].mutable_data<T>());
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("dot_grad"), x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) {
        const int64_t rows = c[dout].numel();
        device::PairArgs a = device::pair_of(c[x], c[y], rows, rows ? c[x].numel() / rows : 0);
        a.dout = device::operand(c[dout]);
        if (c.needs(dx)) a.out = device::operand(c[dx]);
        if (c.needs(dy)) a.x_norm = device::operand(c[dy]);
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::math::dot_op
