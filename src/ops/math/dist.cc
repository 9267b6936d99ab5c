// The p-norm of the difference of two tensors, with broadcasting.
#include <cmath>
#include <memory>

#include "ops/declare/declare.h"
#include "ops/device/launch.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/sums.h"
#include "ops/math/norm_functions.h"

namespace anabranch::math::dist_op {
namespace {

constexpr int kMostAxes = 6;  // as in Fluid

// In chunks that depend only on the shapes, joined in order.
template <class T> double distance(const KernelContext& c, const NdLoop<3>& loop, NormOf norm, const T* x, const T* y) {
  constexpr int64_t kChunks = 64;
  const bool one_run = loop.outer() == 1;
  const int64_t n = one_run ? loop.inner() : loop.outer();
  const int64_t chunk = std::max((n + kChunks - 1) / kChunks, one_run ? kMathGrain : 1);
  const auto step = loop.inner_strides();
  const auto run = [=](int64_t a, int64_t b, int64_t count, double total) {
    const auto size = [=](int64_t i) { return std::abs(static_cast<double>(x[a + i * step[1]] - y[b + i * step[2]])); };
    if (norm.p == 1) return total + sum_of<double>(count, size);
    if (norm.p == 2) return total + sum_of<double>(count, [=](int64_t i) { return size(i) * size(i); });
    for (int64_t i = 0; i < count; ++i) total = norm.join(total, norm.term(size(i)));
    return total;
  };
  double parts[kChunks];
  std::fill_n(parts, kChunks, norm.start());
  c.parallel_each((n + chunk - 1) / chunk, 1, [&](int64_t k) {
    const int64_t first = k * chunk, last = std::min(n, first + chunk);
    if (one_run) {
      parts[k] = run(first * step[1], first * step[2], last - first, parts[k]);
    } else {
      loop.each_run(first, last, [&](const auto& at) { parts[k] = run(at[1], at[2], loop.inner(), parts[k]); });
    }
  });
  double total = norm.start();
  for (double part : parts) total = norm.join(total, part);
  return norm.result(total);
}

// The gradients of all differences of the broadcast operands.
template <class T>
void slopes(const KernelContext& c, const NdLoop<3>& loop, NormOf norm, const T* x, const T* y, double out, double dout,
            T* to) {
  const auto step = loop.inner_strides();
  loop.run(c, kMathGrain, [=](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const auto d = static_cast<double>(x[at[1] + i * step[1]] - y[at[2] + i * step[2]]);
      to[at[0] + i * step[0]] = static_cast<T>(norm.slope(d, out) * dout);
    }
  });
}

NdLoop<3> differences(const Shape& x, const Shape& y) { return broadcast_loop(broadcast_shape(x, y, -1), x, y, -1); }

AB_OP(dist)
    .doc(
        "Out = the p-norm of X - Y: (sum of |X - Y|^p)^(1/p); p = 0 counts nonzero differences, infinity takes the "
        "maximum.")
    .in("X", "[...] float, 1 to 6 axes, not empty")
    .in("Y", "[...] like X; extents of 1 and missing axes are broadcast")
    .out("Out", "[1] like X")
    .attr<float>("p", 2.0f, "the order of the norm, also 0, negative or infinite")
    .infer([](InferContext& c) {
      for (const char* slot : {"X", "Y"}) {
        check_rank(c, slot, 1, kMostAxes);
        AB_CHECK(c.in(slot).shape.numel() != 0, InvalidArgument, "{} must not be empty, got {}", slot,
                 c.in(slot).shape.str());
      }
      check_same_dtype(c, "X", "Y");
      broadcast_shape(c.in("X").shape, c.in("Y").shape, -1);
      c.set_out("Out", scalar_shape(), c.in("X").dtype);
    })
    .grad_reads({"X", "Y"}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [norm = NormOf{static_cast<double>(op.attr<float>("p"))}, x = op.in("X"), y = op.in("Y"),
              out = op.out("Out")](KernelContext& c) {
        const auto loop = differences(c[x].shape(), c[y].shape());
        *c[out].mutable_data<T>() = static_cast<T>(distance(c, loop, norm, c[x].data<T>(), c[y].data<T>()));
      };
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("dist"), p = static_cast<double>(op.attr<float>("p")), x = op.in("X"),
              y = op.in("Y"), out = op.out("Out")](const DeviceContext& c) {
        const auto axes = device::axes_of(differences(c[x].shape(), c[y].shape()));
        c.launch(kernel,
                 device::BinaryArgs{device::operand(c[x]), device::operand(c[y]), device::operand(c[out]), axes, {p}});
      };
    });

AB_GRAD(dist)
    .doc(
        "X@GRAD = Out@GRAD sign(X - Y) (|X - Y| / Out)^(p - 1), summed over the axes on which X was broadcast; Y@GRAD "
        "= its negative.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [norm = NormOf{static_cast<double>(op.attr<float>("p"))}, x = op.in("X"), y = op.in("Y"),
              out = op.in("Out"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
              scratch = std::make_unique<Tensor>()](KernelContext& c) {
        const Shape &a = c[x].shape(), &b = c[y].shape(), both = broadcast_shape(a, b, -1);
        scratch->resize(both, dtype_of<T>);
        T* met = scratch->mutable_data<T>();
        slopes(c, broadcast_loop(both, a, b, -1), norm, c[x].data<T>(), c[y].data<T>(),
               static_cast<double>(*c[out].data<T>()), static_cast<double>(*c[dout].data<T>()), met);
        if (c.needs(dx)) sum_to(c, both, laid(both, a, -1).y, met, c[dx].mutable_data<T>());
        if (!c.needs(dy)) return;
        T* to = c[dy].mutable_data<T>();
        sum_to(c, both, laid(both, b, -1).y, met, to);
        map(c, kCheapGrain, c[dy].numel(), to, to, [](T v) { return -v; });
      };
    })
    .device<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("binary_grad/dist"), p = static_cast<double>(op.attr<float>("p")),
              x = op.in("X"), y = op.in("Y"), out = op.in("Out"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](const DeviceContext& c) {
        device::BinaryGradArgs a{};
        a.x = device::operand(c[x]);
        a.y = device::operand(c[y]);
        a.out = device::operand(c[out]);
        a.dout = device::operand(c[dout]);
        if (c.needs(dx)) a.dx = device::operand(c[dx]);
        if (c.needs(dy)) a.dy = device::operand(c[dy]);
        a.axes = device::axes_of(differences(c[x].shape(), c[y].shape()));
        std::fill_n(a.axes.stride[0], kMaxRank, 0);  // one number for all
        a.p[0] = p;
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::math::dist_op
