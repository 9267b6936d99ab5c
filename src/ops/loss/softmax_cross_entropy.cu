// Softmax and its cross entropy in one op, on devices: "softmax_cross_entropy/<x>/<label>" and "_grad"; a label type
// equal to that of x means distributions. y: the softmax, which the gradient may alias.
#include "ops/nn/class_line.h"

namespace anabranch::device {

// The class of a hard label; -1: ignored.
template <class Label>
AB_HD int64_t class_of(const ClassLine& line, const Label* label, int64_t sample, int64_t ignored,
                       const FaultReport& report) {
  const int64_t own = label[sample];
  if (own >= 0 && own < line.classes) return own == ignored ? -1 : own;
  if (own != ignored) report(1, sample);
  return -1;
}

struct SoftmaxCrossEntropy {
  using Args = ClassArgs;
  template <class T, class Label> struct Body {
    static constexpr bool kSoft = std::is_same_v<T, Label>;
    ClassLine line;
    const T* x;
    const Label* label;
    T *y, *loss;
    int64_t ignored;
    FaultReport report;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      const int64_t first = line.begin(sample);
      Compute<T> sum;
      const Norm<Compute<T>> norm = line.norm(lanes, x + first, &sum);
      double total = 0;
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        const Compute<T> v = load(x[at]);
        if constexpr (kSoft) total -= static_cast<double>(load(label[at]) * norm.log_softmax(v));
        store(y + at, std::exp(shifted(v, norm.top)) / sum);
      }
      if constexpr (kSoft) total = lanes.sum(total);
      if (lanes.index() != 0) return;
      if constexpr (kSoft) {
        store(loss + sample, static_cast<Compute<T>>(total));
      } else {
        const int64_t own = class_of(line, label, sample, ignored, report);
        store(loss + sample, own < 0 ? Compute<T>(0) : -norm.log_softmax(load(x[line.at(sample, own)])));
      }
    }
  };
  template <class T, class Label> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.classes,
                Body<T, Label>{ClassLine(a), a.x.get<T>(), a.label.get<Label>(), a.y.get<T>(), a.loss.get<T>(),
                               a.ignored, FaultReport(a.fault)});
  }
};

// x: the softmax; dy: gradient of the loss. (p - label) dy; 0 for ignored samples if flags say so.
struct SoftmaxCrossEntropyGrad {
  using Args = ClassArgs;
  template <class T, class Label> struct Body {
    ClassLine line;
    const T *p, *dy;
    const Label* label;
    T* dx;
    int64_t ignored;
    bool ignores;
    FaultReport report;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / line.inner % line.classes;
      const int64_t sample = i / line.inner / line.classes * line.inner + i % line.inner;
      const Compute<T> g = load(dy[sample]), own = load(p[i]);
      if constexpr (std::is_same_v<T, Label>) {
        store(dx + i, (own - load(label[i])) * g);
      } else {
        const int64_t target = label[sample];
        if (k == 0) class_of(line, label, sample, ignored, report);
        store(dx + i, ignores && target == ignored ? Compute<T>(0) : (own - Compute<T>(target == k)) * g);
      }
    }
  };
  template <class T, class Label> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.classes * a.inner,
                Body<T, Label>{ClassLine(a), a.x.get<T>(), a.dy.get<T>(), a.label.get<Label>(), a.y.get<T>(), a.ignored,
                               (a.flags & kIgnoredHaveNoGradient) != 0, FaultReport(a.fault)});
  }
};

#define AB_WITH_LABELS(T) Types<T, int64_t>, Types<T, int32_t>, Types<T, T>

AB_KERNEL("softmax_cross_entropy", SoftmaxCrossEntropy, AB_WITH_LABELS(float), AB_WITH_LABELS(double),
          AB_WITH_LABELS(half), AB_WITH_LABELS(bfloat16));
AB_KERNEL("softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad, AB_WITH_LABELS(float), AB_WITH_LABELS(double),
          AB_WITH_LABELS(half), AB_WITH_LABELS(bfloat16));

}  // namespace anabranch::device
