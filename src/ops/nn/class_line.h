// The classes of one sample in a tensor [outer, classes, inner], for kernels.
#pragma once
#include <cmath>
#include <limits>

#include "ops/device/args_rows.h"
#include "ops/device/kernels.h"
#include "ops/nn/softmax_functions.h"

namespace anabranch::device {

struct ClassLine {
  int64_t classes, inner;
  explicit ClassLine(const ClassArgs& a) : classes(a.classes), inner(a.inner) {}
  AB_HD int64_t begin(int64_t sample) const { return sample / inner * classes * inner + sample % inner; }
  AB_HD int64_t at(int64_t sample, int64_t k) const { return begin(sample) + k * inner; }

  // The largest logit and the sum of the exponentials; a NaN makes both NaN.
  template <class T, class L> AB_HD Norm<Compute<T>> norm(const L& lanes, const T* x, Compute<T>* sum) const {
    Compute<T> top = -std::numeric_limits<Compute<T>>::infinity();
    for (int64_t k = lanes.index(); k < classes; k += lanes.count()) top = MaxOf{}(load(x[k * inner]), top);
    top = lanes.max(top);
    double total = 0;
    for (int64_t k = lanes.index(); k < classes; k += lanes.count()) {
      total += static_cast<double>(std::exp(shifted(load(x[k * inner]), top)));
    }
    *sum = static_cast<Compute<T>>(lanes.sum(total));
    return {top, std::log(*sum)};
  }
};

}  // namespace anabranch::device
