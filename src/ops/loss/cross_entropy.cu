// Cross entropy of probabilities on devices: "cross_entropy/<x>/<label>" and "_grad"; a label type equal to that of x
// means distributions.
#include "ops/loss/logistic.h"
#include "ops/nn/class_line.h"

namespace anabranch::device {

// y: the loss of each sample; `loss`, if requested: the probability of its label, 1 for ignored ones.
struct CrossEntropy {
  using Args = ClassArgs;
  template <class T, class Label> struct Body {
    ClassLine line;
    const T* x;
    const Label* label;
    T *y, *match;
    int64_t ignored;
    FaultReport report;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      if constexpr (std::is_same_v<T, Label>) {
        double total = 0;
        for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
          const int64_t at = line.at(sample, k);
          total += static_cast<double>(load(label[at]) * loss::neg_log(load(x[at])));
        }
        total = lanes.sum(total);
        if (lanes.index() == 0) store(y + sample, static_cast<Compute<T>>(total));
      } else if (lanes.index() == 0) {
        const int64_t own = label[sample];
        const bool inside = own >= 0 && own < line.classes, counts = inside && own != ignored;
        if (!inside && own != ignored) report(1, sample);
        const Compute<T> p = counts ? load(x[line.at(sample, own)]) : Compute<T>(1);
        store(y + sample, counts ? loss::neg_log(p) : Compute<T>(0));
        if (match) store(match + sample, p);
      }
    }
  };
  template <class T, class Label> static int run(const Launch& launch, const Args& a) {
    const int64_t width = std::is_same_v<T, Label> ? a.classes : 1;
    return rows(launch, a.outer * a.inner, width,
                Body<T, Label>{ClassLine(a), a.x.get<T>(), a.label.get<Label>(), a.y.get<T>(), a.loss.get<T>(),
                               a.ignored, FaultReport(a.fault)});
  }
};

// y: the gradient of the probabilities. These are x, or only those of the labels, `own`.
struct CrossEntropyGrad {
  using Args = ClassArgs;
  template <class T, class Label> struct Body {
    ClassLine line;
    const T *x, *own, *dy;
    const Label* label;
    T* dx;
    int64_t ignored;
    FaultReport report;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / line.inner % line.classes;
      const int64_t sample = i / line.inner / line.classes * line.inner + i % line.inner;
      const Compute<T> g = load(dy[sample]);
      if constexpr (std::is_same_v<T, Label>) {
        store(dx + i, -g * load(label[i]) / load(x[i]));
      } else {
        const int64_t target = label[sample];
        if (k == 0 && (target < 0 || target >= line.classes) && target != ignored) report(1, sample);
        const bool here = target == k && target != ignored;
        store(dx + i, here ? -g / load(own ? own[sample] : x[i]) : Compute<T>(0));
      }
    }
  };
  template <class T, class Label> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.classes * a.inner,
                Body<T, Label>{ClassLine(a), a.x.get<T>(), a.own.get<T>(), a.dy.get<T>(), a.label.get<Label>(),
                               a.y.get<T>(), a.ignored, FaultReport(a.fault)});
  }
};

#define AB_WITH_LABELS(T) Types<T, int64_t>, Types<T, int32_t>, Types<T, T>

AB_KERNEL("cross_entropy", CrossEntropy, AB_WITH_LABELS(float), AB_WITH_LABELS(double), AB_WITH_LABELS(half),
          AB_WITH_LABELS(bfloat16));
AB_KERNEL("cross_entropy_grad", CrossEntropyGrad, AB_WITH_LABELS(float), AB_WITH_LABELS(double), AB_WITH_LABELS(half),
          AB_WITH_LABELS(bfloat16));

}  // namespace anabranch::device
