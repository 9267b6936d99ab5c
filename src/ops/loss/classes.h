// What losses over classes share: the split of a tensor around its class axis, labels, and a logarithm that stays
// finite as the original's does.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"

namespace anabranch::loss {

// A tensor seen as [outer, classes, inner].
struct ClassAxis {
  int64_t outer = 1, classes = 1, inner = 1;
  ClassAxis(const Shape& s, int64_t axis) {
    const int a = normal_axis(axis, s.rank(), "axis");
    outer = s.numel(0, a);
    classes = s[a];
    inner = s.numel(a + 1, s.rank());
  }
  int64_t samples() const { return outer * inner; }
};

// -log(p) within +-1e20: p = 0 gives a large loss instead of an infinite one. NaN stays.
template <class T> T neg_log(T p) {
  return std::max(std::min(-std::log(p), static_cast<T>(1e20)), static_cast<T>(-1e20));
}

// Labels are one class for each sample, inside [0, classes) or `ignored` (0: none is, for 0 is a class).
inline void check_labels(const char* op, const int64_t* label, int64_t n, int64_t classes, int64_t ignored = 0) {
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<uint64_t>(label[i]) < static_cast<uint64_t>(classes) || label[i] == ignored) [[likely]]
      continue;
    AB_THROW(InvalidArgument, "{}: Label of sample {} is {}, expected 0 to {} ({} classes)", op, i, label[i],
             classes - 1, classes);
  }
}

// Shape rules of (predictions, labels) with the classes on `axis`; gives the shape of one value for each sample.
inline Shape infer_classes(const InferContext& c, const char* x_slot, bool soft, int64_t axis) {
  const Shape &x = c.in(x_slot).shape, &label = c.in("Label").shape;
  const int a = normal_axis(axis, x.rank(), "axis");
  AB_CHECK(x.rank() >= 1 && x[a] != 0, InvalidArgument, "{}: {} is {}, expected at least one class", op_name(c), x_slot,
           x.str());
  Shape one = x;
  one.set(a, 1);
  const bool without_axis = a == x.rank() - 1 && label.rank() == x.rank() - 1;  // [N] labels of [N, D] predictions
  const Shape wanted = soft ? x : without_axis ? x.slice(0, a) : one;
  AB_CHECK(compatible(label, wanted), ShapeMismatch, "{}: {} is {}, Label is {}, expected {}", op_name(c), x_slot,
           x.str(), label.str(), wanted.str());
  const DType dtype = c.in("Label").dtype;
  AB_CHECK(soft ? dtype == c.in(x_slot).dtype : dtype == DType::kInt64 || dtype == DType::kInt32, InvalidArgument,
           "{}: Label holds {}, expected {}", op_name(c), dtype_name(dtype),
           soft ? dtype_name(c.in(x_slot).dtype) : "int64");
  return one;
}

}  // namespace anabranch::loss
