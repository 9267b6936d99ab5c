#include "ops/declare/declare.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/nd_loop.h"

namespace anabranch::math::kron_op {
namespace {

Shape padded(const Shape& s, int rank) {
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    const int own = axis - (rank - s.rank());
    out.push_back(own < 0 ? 1 : s[own]);
  }
  return out;
}

Shape kron_shape(const InferContext& c) {
  for (const char* slot : {"X", "Y"}) check_rank(c, slot, 1, kMaxRank / 2);
  check_same_dtype(c, "X", "Y");
  const int rank = std::max(c.in("X").shape.rank(), c.in("Y").shape.rank());
  const Shape x = padded(c.in("X").shape, rank), y = padded(c.in("Y").shape, rank);
  Shape out;
  for (int axis = 0; axis < rank; ++axis) {
    out.push_back(x[axis] == kUnknown || y[axis] == kUnknown ? kUnknown : x[axis] * y[axis]);
  }
  return out;
}

// Operands: result, X, Y. Axis by axis the extent of X, then the extent of Y.
NdLoop<3> kron_loop(const Shape& x_shape, const Shape& y_shape) {
  const int rank = std::max(x_shape.rank(), y_shape.rank());
  const Shape x = padded(x_shape, rank), y = padded(y_shape, rank);
  Shape out;
  for (int axis = 0; axis < rank; ++axis) out.push_back(x[axis] * y[axis]);
  const auto sx = dense_strides(x), sy = dense_strides(y), so = dense_strides(out);
  NdLoop<3> loop;
  for (int axis = 0; axis < rank; ++axis) {
    loop.add_axis(x[axis], {so[axis] * y[axis], sx[axis], 0});
    loop.add_axis(y[axis], {so[axis], 0, sy[axis]});
  }
  return loop;
}

// Calls fn(index in the result, in X, in Y) in order.
template <class Fn> void each_point(const NdLoop<3>& loop, Fn&& fn) {
  if (loop.total() == 0) return;
  const auto step = loop.inner_strides();
  loop.each_run(0, loop.outer(), [&](const auto& at) {
    for (int64_t i = 0; i < loop.inner(); ++i) fn(at[0] + i * step[0], at[1] + i * step[1], at[2] + i * step[2]);
  });
}

AB_OP(kron)
    .doc("Kronecker product: block i of Out is X[i] Y; a tensor of lower rank gets leading axes of extent 1.")
    .in("X", "[...] numbers, at most four axes")
    .in("Y", "[...], dtype of X")
    .out("Out", "each extent is the product of those of X and Y; dtype of X")
    .infer([](InferContext& c) { c.set_out("Out", kron_shape(c), c.in("X").dtype); })
    .grad_reads({"X", "Y"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        const NdLoop<3> loop = kron_loop(c[x].shape(), c[y].shape());
        loop.run(c, kCheapGrain, [=, step = loop.inner_strides()](const auto& at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            to[at[0] + i * step[0]] = a[at[1] + i * step[1]] * b[at[2] + i * step[2]];
          }
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("binary/mul"), x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](const DeviceContext& c) {
        const auto axes = device::axes_of(kron_loop(c[x].shape(), c[y].shape()));
        c.launch(kernel,
                 device::BinaryArgs{device::operand(c[x]), device::operand(c[y]), device::operand(c[out]), axes, {}});
      };
    });

AB_GRAD(kron)
    .doc("X@GRAD[i] = the sum of Out@GRAD Y over block i, Y@GRAD the sum of X[i] Out@GRAD over the blocks.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const T *a = c[x].data<T>(), *b = c[y].data<T>(), *g = c[dout].data<T>();
        const NdLoop<3> loop = kron_loop(c[x].shape(), c[y].shape());
        if (c.needs(dx)) {
          T* to = c[dx].mutable_data<T>();
          std::fill(to, to + c[dx].numel(), T{0});
          each_point(loop, [=](int64_t o, int64_t i, int64_t j) { to[i] += g[o] * b[j]; });
        }
        if (c.needs(dy)) {
          T* to = c[dy].mutable_data<T>();
          std::fill(to, to + c[dy].numel(), T{0});
          each_point(loop, [=](int64_t o, int64_t i, int64_t j) { to[j] += g[o] * a[i]; });
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("binary_grad/mul"), x = op.in("X"), y = op.in("Y"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) {
        device::BinaryGradArgs a{};
        a.x = device::operand(c[x]);
        a.y = device::operand(c[y]);
        a.dout = device::operand(c[dout]);
        if (c.needs(dx)) a.dx = device::operand(c[dx]);
        if (c.needs(dy)) a.dy = device::operand(c[dy]);
        a.axes = device::axes_of(kron_loop(c[x].shape(), c[y].shape()));
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::math::kron_op
