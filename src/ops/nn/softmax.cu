// Softmax and its logarithm over one axis on devices: "softmax", "log_softmax", with "_grad". Outputs may lie in the
// memory of inputs.
#include "ops/nn/class_line.h"

namespace anabranch::device {

template <bool kLog> struct Softmax {
  using Args = ClassArgs;
  template <class T> struct Body {
    ClassLine line;
    const T* x;
    T* y;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      const int64_t first = line.begin(sample);
      Compute<T> sum;
      const Norm<Compute<T>> norm = line.norm(lanes, x + first, &sum);
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        const Compute<T> v = load(x[at]);
        store(y + at, kLog ? norm.log_softmax(v) : std::exp(shifted(v, norm.top)) / sum);
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.classes, Body<T>{ClassLine(a), a.x.get<T>(), a.y.get<T>()});
  }
};

// x: the softmax, or its logarithm. dx = y (dy - sum y dy), or dy - exp(y) sum dy.
template <bool kLog> struct SoftmaxGrad {
  using Args = ClassArgs;
  template <class T> struct Body {
    ClassLine line;
    const T *y, *dy;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      const int64_t first = line.begin(sample);
      double total = 0;
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        total += static_cast<double>(kLog ? load(dy[at]) : load(y[at]) * load(dy[at]));
      }
      const auto sum = static_cast<Compute<T>>(lanes.sum(total));
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        const Compute<T> own = load(y[at]), d = load(dy[at]);
        store(dx + at, kLog ? d - std::exp(own) * sum : own * (d - sum));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.classes, Body<T>{ClassLine(a), a.x.get<T>(), a.dy.get<T>(), a.y.get<T>()});
  }
};

AB_KERNEL("softmax", Softmax<false>, float, double, half, bfloat16);
AB_KERNEL("log_softmax", Softmax<true>, float, double, half, bfloat16);
AB_KERNEL("softmax_grad", SoftmaxGrad<false>, float, double, half, bfloat16);
AB_KERNEL("log_softmax_grad", SoftmaxGrad<true>, float, double, half, bfloat16);

}  // namespace anabranch::device
