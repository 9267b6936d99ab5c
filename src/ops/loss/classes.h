// Shared by losses over classes: labels and their shapes.
#pragma once
#include <algorithm>
#include <string>

#include "base/flags.h"
#include "opdef/device_status.h"
#include "ops/declare/declare.h"
#include "ops/kernels/ids.h"
#include "ops/loss/logistic.h"
#include "ops/nn/softmax_block.h"

namespace anabranch::loss {

// Labels must be one class per sample, in [0, classes) or equal to `ignored` (0: ignores none, because 0 is a class).
inline void check_labels(const int64_t* label, int64_t n, int64_t classes, int64_t ignored = 0) {
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<uint64_t>(label[i]) < static_cast<uint64_t>(classes) || label[i] == ignored) [[likely]]
      continue;
    AB_THROW(InvalidArgument, "Label of sample {} must be 0 to {} ({} classes), got {}", i, classes - 1, classes,
             label[i]);
  }
}

// The same check for kernels that take ClassArgs.
inline auto wrong_label() { return device_fault(1, "Label of sample {} must be one of the classes (<Label>)"); }

// Shape rules of (predictions, labels) with the classes on `axis`; returns the shape of one value per sample.
inline Shape infer_classes(const InferContext& c, const char* x_slot, bool soft, int64_t axis) {
  const Shape &x = c.in(x_slot).shape, &label = c.in("Label").shape;
  const int a = normal_axis(axis, x.rank(), "axis");
  AB_CHECK(x.rank() >= 1 && x[a] != 0, InvalidArgument, "{} must have at least one class, got {}", x_slot, x.str());
  Shape one = x;
  one.set(a, 1);
  const bool without_axis = a == x.rank() - 1 && label.rank() == x.rank() - 1;  // [N] labels of [N, D] predictions
  const Shape needed = soft ? x : without_axis ? x.slice(0, a) : one;
  AB_CHECK(compatible(label, needed), ShapeMismatch, "Label must be {} for {} {}, got {}", needed.str(), x_slot,
           x.str(), label.str());
  if (soft) {
    check_same_dtype(c, "Label", x_slot);
  } else if (c.runtime() || !Flags::exact_fluid()) {  // Fluid 1.8.5 rejects float labels only at run time
    check_ids_dtype(c, "Label");
  }
  return one;
}

}  // namespace anabranch::loss
