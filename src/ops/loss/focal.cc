// Cross entropy of class scores in which well-classified samples have little weight.
#include <cfloat>
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/loss/logistic.h"

namespace anabranch::loss::focal_op {
namespace {

// One score with probability p = sigmoid(x): -alpha (1 - p)^gamma log(p) for the sample's class, else -(1 - alpha)
// p^gamma log(1 - p). As in Fluid, p is at least the smallest normal float32 in log(p).
template <class T> struct Focal {
  T gamma, alpha;
  T log_of(T x) const { return std::max(-softplus(-x), std::log(T(FLT_MIN))); }
  T value(T x, bool own) const {
    const T p = logistic(x);
    return own ? -alpha * std::pow(1 - p, gamma) * log_of(x) : (1 - alpha) * std::pow(p, gamma) * softplus(x);
  }
  T slope(T x, bool own) const {
    const T p = logistic(x);
    if (own) return -alpha * std::pow(1 - p, gamma) * (1 - p - gamma * p * log_of(x));
    return (1 - alpha) * std::pow(p, gamma) * (p + gamma * (1 - p) * softplus(x));
  }
};

// to[i] = fn(i, whether the class is the sample's), divided by the number of foreground samples; 0 for ignored samples.
template <class T, class Fn>
void each_score(const KernelContext& c, const Tensor& x, const Tensor& label, const Tensor& foreground, T* to, Fn fn) {
  const int64_t classes = x.shape()[1];
  const int32_t* labels = label.data<int32_t>();
  const T by = static_cast<T>(std::max(1, *foreground.data<int32_t>()));
  c.parallel_each(x.numel(), kMathGrain, [=](int64_t i) {
    const int64_t own = labels[i / classes];
    to[i] = own == -1 ? T{0} : fn(i, own == i % classes + 1) / by;
  });
}

template <class T> Focal<T> focal_of(const KernelArgs& op) {
  return {static_cast<T>(op.attr<float>("gamma")), static_cast<T>(op.attr<float>("alpha"))};
}

AB_OP(sigmoid_focal_loss)
    .doc(
        "With p = 1 / (1 + exp(-X)): Out = -alpha (1 - p)^gamma log(p) / FgNum at the class that Label names, -(1 - "
        "alpha) p^gamma log(1 - p) / FgNum at the others, 0 where Label is -1.")
    .source("Lin et al., ICCV 2017, arXiv:1708.02002")
    .in("X", "[N, C] float, scores of the classes")
    .in("Label", "[N, 1] int32: 1 to C: a class, 0: background, -1: ignored")
    .in("FgNum", "[1] int32: number of foreground samples, at least 1")
    .out("Out", "[N, C] like X")
    .attr<float>("gamma", 2.0f, "exponent that reduces the weight of well-classified samples")
    .attr<float>("alpha", 0.25f, "weight of the class that Label names; the others have 1 - alpha")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, 2);
      check_shape(c, "Label", Shape{c.in("X").shape[0], 1});
      check_rank(c, "FgNum", 1, 1);
      AB_CHECK(c.in("FgNum").shape[0] != 0, ShapeMismatch, "FgNum must be [1], got {}", c.in("FgNum").shape.str());
      for (const char* slot : {"Label", "FgNum"}) {
        check_dtype(c, slot, DType::kInt32);
      }
      c.same_as("Out", "X");
    })
    .grad_reads({"X", "Label", "FgNum"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [loss = focal_of<T>(op), x = op.in("X"), label = op.in("Label"), fg = op.in("FgNum"),
              out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        each_score(c, c[x], c[label], c[fg], c[out].mutable_data<T>(),
                   [=](int64_t i, bool own) { return loss.value(from[i], own); });
      };
    });

AB_GRAD(sigmoid_focal_loss)
    .doc("X@GRAD = Out@GRAD times the derivative of the loss with respect to each score.")
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [loss = focal_of<T>(op), x = op.in("X"), label = op.in("Label"), fg = op.in("FgNum"),
              dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const T *from = c[x].data<T>(), *d = c[dout].data<T>();
        each_score(c, c[x], c[label], c[fg], c[dx].mutable_data<T>(),
                   [=](int64_t i, bool own) { return d[i] * loss.slope(from[i], own); });
      };
    });

}  // namespace
}  // namespace anabranch::loss::focal_op
