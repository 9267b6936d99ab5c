// Out = X scaled to Euclidean length 1 along an axis.
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/sums.h"

namespace anabranch::math::norm_op {
namespace {

// A tensor as lines along an axis: element k of line (o, i) is x[(o * n + k) * inner + i].
struct Lines {
  int64_t count, n, inner;
  Lines(const Shape& s, int axis)
      : count(s.numel(0, axis) * s.numel(axis + 1, s.rank())), n(s[axis]), inner(s.numel(axis + 1, s.rank())) {}
  int64_t begin(int64_t line) const { return line / inner * n * inner + line % inner; }
  int64_t grain() const { return std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, n)); }
};

Shape norm_shape(const InferContext& c) {
  Shape s = c.in("X").shape;
  s.set(normal_axis(c.attr<int32_t>("axis"), s.rank(), "axis"), 1);
  return s;
}

template <class T> void norm_line(const T* x, int64_t n, int64_t step, T epsilon, T* out, T* length) {
  const double sum =
      sum_of<double>(n, [=](int64_t k) { return static_cast<double>(x[k * step]) * static_cast<double>(x[k * step]); });
  *length = static_cast<T>(std::sqrt(sum + static_cast<double>(epsilon)));
  for (int64_t k = 0; k < n; ++k) out[k * step] = x[k * step] / *length;
}

// dX = (dOut - X (X . dOut) / length^2) / length
template <class T> void norm_grad_line(const T* x, const T* dout, int64_t n, int64_t step, T length, T* dx) {
  const double dot = sum_of<double>(
      n, [=](int64_t k) { return static_cast<double>(x[k * step]) * static_cast<double>(dout[k * step]); });
  const T share = static_cast<T>(dot / (static_cast<double>(length) * static_cast<double>(length)));
  for (int64_t k = 0; k < n; ++k) dx[k * step] = (dout[k * step] - x[k * step] * share) / length;
}

AB_OP(norm)
    .doc("Norm = sqrt(sum of X^2 along an axis + epsilon), Out = X / Norm.")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .out_intermediate("Norm", "X's shape with extent 1 on the axis")
    .required_attr("axis", AttrType::kInt, "axis; negative: from the end")
    .attr<float>("epsilon", 1e-10f, "lower bound that keeps the norm of zeros above 0")
    .infer([](InferContext& c) {
      c.same_shape("Out", "X");
      c.set_out("Norm", norm_shape(c), c.in("X").dtype);
    })
    .grad_reads({"X"}, {"Norm"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), epsilon = static_cast<T>(op.attr<float>("epsilon")), x = op.in("X"),
              out = op.out("Out"), norm = op.out("Norm")](KernelContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        const T* from = c[x].data<T>();
        T *to = c[out].mutable_data<T>(), *lengths = c.needs(norm) ? c[norm].mutable_data<T>() : nullptr;
        c.parallel_for(l.count, l.grain(), [=](int64_t begin, int64_t end) {
          T unused;
          for (int64_t i = begin; i < end; ++i) {
            norm_line(from + l.begin(i), l.n, l.inner, epsilon, to + l.begin(i), lengths ? lengths + i : &unused);
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("norm"), axis = op.attr<int32_t>("axis"),
              epsilon = static_cast<double>(op.attr<float>("epsilon")), x = op.in("X"), out = op.out("Out"),
              norm = op.out("Norm")](const DeviceContext& c) {
        device::NormArgs a = device::norm_along(c[x], axis);
        a.y = device::operand(c[out]);
        if (c.needs(norm)) a.length = device::operand(c[norm]);
        a.p[0] = epsilon;
        c.launch(kernel, a);
      };
    });

AB_GRAD(norm)
    .doc("X@GRAD = (Out@GRAD - X (X . Out@GRAD) / Norm^2) / Norm along the axis.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), x = op.in("X"), norm = op.in("Norm"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Lines l(c[x].shape(), normal_axis(axis, c[x].shape().rank(), "axis"));
        const T *from = c[x].data<T>(), *lengths = c[norm].data<T>(), *douts = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(l.count, l.grain(), [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t at = l.begin(i);
            norm_grad_line(from + at, douts + at, l.n, l.inner, lengths[i], to + at);
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("norm_grad"), axis = op.attr<int32_t>("axis"), x = op.in("X"),
              norm = op.in("Norm"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) {
        device::NormArgs a = device::norm_along(c[x], axis);
        a.dy = device::operand(c[dout]);
        a.length_in = device::operand(c[norm]);
        a.y = device::operand(c[dx]);
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::math::norm_op
