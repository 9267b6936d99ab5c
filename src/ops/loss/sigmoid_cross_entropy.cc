// Cross entropy of independent outcomes, from logits.
#include "ops/declare/declare.h"
#include "ops/device/launch_loss.h"
#include "ops/kernels/flat_loop.h"
#include "ops/loss/logistic_tiles.h"

namespace anabranch::loss::sigmoid_cross_entropy_op {
namespace {

// Number of elements whose label is not ignored; at least 1, because it is a divisor.
template <class T> T counted(const T* label, int64_t n, T ignored, bool normalize) {
  if (!normalize) return 1;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += label[i] != ignored;  // compares whole labels, not their integer parts
  return static_cast<T>(std::max<int64_t>(1, count));
}

// with(begin, end, out, argument, fn): writes fn(i, t), with t a function of x, where the label is not ignored and 0
// elsewhere, divided by the number of those labels if the loss is normalized.
template <class T, class With, class Fn>
void each(KernelContext& c, In x, In label, T ignored, bool normalize, T* out, With with, Fn fn) {
  const T *p = c[x].data<T>(), *y = c[label].data<T>();
  const int64_t n = c[x].numel();
  const T norm = counted(y, n, ignored, normalize);
  c.parallel_for(n, kMathGrain, [=](int64_t begin, int64_t end) {
    with(
        begin, end, out, [=](int64_t i) { return p[i]; },
        [=](int64_t i, T t) {
          const T loss = fn(i, p[i], y[i], t) / norm;
          return is_ignored(y[i], ignored) ? T{0} : loss;
        });
  });
}

// On a device; dy: null for the loss itself.
template <class T> Kernel loss_there(const char* stem, const KernelArgs& op, In dy, Out y) {
  return device::ElementLoss<T>(stem, op.in("X"), op.in("Label"), dy, y,
                                {static_cast<double>(op.attr<int32_t>("ignore_index"))}, op.attr<bool>("normalize"));
}

AB_OP(sigmoid_cross_entropy_with_logits)
    .doc(
        "Cross entropy of sigmoid(X) with Label, elementwise: Out = max(X, 0) - X Label + log(1 + e^-|X|), and 0 where "
        "the integer part of Label is ignore_index.")
    .in("X", "[...] float: logits")
    .in("Label", "like X: probabilities in [0, 1]")
    .out("Out", "like X")
    .attr<bool>("normalize", false, "divides the result by the number of labels that are not ignored")
    .attr<int32_t>("ignore_index", -100, "labels with this integer part are ignored")
    .infer([](InferContext& c) {
      check_same(c, "X", "Label");
      c.same_as("Out", "X");
    })
    .grad_reads({"X", "Label"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label");
      const Out out = op.out("Out");
      const T ignored = static_cast<T>(op.attr<int32_t>("ignore_index"));
      const bool normalize = op.attr<bool>("normalize");
      return [=](KernelContext& c) {
        each(
            c, x, label, ignored, normalize, c[out].mutable_data<T>(), [](auto... args) { with_softplus(args...); },
            [](int64_t, T p, T y, T t) { return t - p * y; });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return loss_there<T>("sigmoid_cross_entropy", op, In(), op.out("Out"));
    });

AB_GRAD(sigmoid_cross_entropy_with_logits)
    .doc("X@GRAD = (sigmoid(X) - Label) Out@GRAD.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), label = op.in("Label"), dout = op.in("Out@GRAD");
      const Out dx = op.out("X@GRAD");
      const T ignored = static_cast<T>(op.attr<int32_t>("ignore_index"));
      const bool normalize = op.attr<bool>("normalize");
      return [=](KernelContext& c) {
        const T* g = c[dout].data<T>();
        each(
            c, x, label, ignored, normalize, c[dx].mutable_data<T>(), [](auto... args) { with_logistic(args...); },
            [=](int64_t i, T, T y, T t) { return (t - y) * g[i]; });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return loss_there<T>("sigmoid_cross_entropy_grad", op, op.in("Out@GRAD"), op.out("X@GRAD"));
    });

}  // namespace
}  // namespace anabranch::loss::sigmoid_cross_entropy_op
