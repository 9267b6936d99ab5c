// Norms of any positive order along an axis.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/sums.h"
#include "ops/math/norm_functions.h"

namespace anabranch::math::p_norm_op {
namespace {

// A tensor as lines along an axis: element k of line i is x[begin(i) + k * inner].
struct AxisLines {
  int64_t count, n, inner;
  AxisLines(const Shape& s, int axis)
      : count(s.numel(0, axis) * s.numel(axis + 1, s.rank())), n(s[axis]), inner(s.numel(axis + 1, s.rank())) {}
  int64_t begin(int64_t line) const { return line / inner * n * inner + line % inner; }
  template <class Fn> void each(const KernelContext& c, Fn&& fn) const {
    c.parallel_each(count, std::max<int64_t>(1, kMathGrain / std::max<int64_t>(1, n)),
                    [&](int64_t i) { fn(i, begin(i)); });
  }
};

double root(double sum, double p) { return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p); }

Shape p_norm_shape(const InferContext& c) {
  const Shape& s = c.in("X").shape;
  const int axis = normal_axis(c.attr<int32_t>("axis"), s.rank(), "axis");
  Shape out;
  for (int a = 0; a < s.rank(); ++a) {
    if (a != axis) {
      out.push_back(s[a]);
    } else if (c.attr<bool>("keepdim")) {
      out.push_back(1);
    }
  }
  return out.rank() ? out : scalar_shape();
}

AB_OP(p_norm)
    .doc("Out = (sum of |X|^porder along an axis)^(1 / porder).")
    .in("X", "[...] float")
    .out("Out", "X's shape without the axis, or with extent 1 there; [1] if no axis is left")
    .attr<float>("porder", 2.0f, "order of the norm, above 0 and finite",
                 [](float p) {
                   AB_CHECK(p > 0 && std::isfinite(p), InvalidArgument, "porder must be above 0 and finite, got {}", p);
                 })
    .attr<int32_t>("axis", -1, "axis; negative: from the end")
    .attr<float>("epsilon", 1e-12f, "added to the denominator of the gradient")
    .attr<bool>("keepdim", false, "keeps the axis with extent 1")
    .infer([](InferContext& c) { c.set_out("Out", p_norm_shape(c), c.in("X").dtype); })
    .grad_reads({"X"}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), p = static_cast<double>(op.attr<float>("porder")), x = op.in("X"),
              out = op.out("Out")](KernelContext& c) {
        const AxisLines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        l.each(c, [=](int64_t line, int64_t at) {
          const auto size = [=](int64_t k) { return std::abs(static_cast<double>(from[at + k * l.inner])); };
          const double sum = p == 1   ? sum_of<double>(l.n, size)
                             : p == 2 ? sum_of<double>(l.n, [=](int64_t k) { return size(k) * size(k); })
                                      : sum_of<double>(l.n, [=](int64_t k) { return std::pow(size(k), p); });
          to[line] = static_cast<T>(root(sum, p));
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("p_norm"), axis = op.attr<int32_t>("axis"),
              p = static_cast<double>(op.attr<float>("porder")), x = op.in("X"),
              out = op.out("Out")](const DeviceContext& c) {
        device::NormArgs a = device::norm_along(c[x], axis);
        a.y = device::operand(c[out]);
        a.p[0] = p;
        c.launch(kernel, a);
      };
    });

AB_GRAD(p_norm)
    .doc("X@GRAD = Out@GRAD sign(X) |X|^(porder - 1) / (Out^(porder - 1) + epsilon).")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), p = static_cast<double>(op.attr<float>("porder")) - 1,
              epsilon = static_cast<double>(op.attr<float>("epsilon")), x = op.in("X"), out = op.in("Out"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const AxisLines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        const T *from = c[x].data<T>(), *norms = c[out].data<T>(), *douts = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        l.each(c, [=](int64_t line, int64_t at) {
          const double below = std::pow(static_cast<double>(norms[line]), p) + epsilon;
          for (int64_t k = 0; k < l.n; ++k) {
            const auto v = static_cast<double>(from[at + k * l.inner]);
            const double slope = sign_or_nan(v) * std::pow(std::abs(v), p) / below;
            to[at + k * l.inner] = static_cast<T>(slope * static_cast<double>(douts[line]));
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("p_norm_grad"), axis = op.attr<int32_t>("axis"),
              p = static_cast<double>(op.attr<float>("porder")),
              epsilon = static_cast<double>(op.attr<float>("epsilon")), x = op.in("X"), out = op.in("Out"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) {
        device::NormArgs a = device::norm_along(c[x], axis);
        a.length_in = device::operand(c[out]);
        a.dy = device::operand(c[dout]);
        a.y = device::operand(c[dx]);
        a.p[0] = p, a.p[1] = epsilon;
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::math::p_norm_op
