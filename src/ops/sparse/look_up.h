// Shared by table lookups: the shape of their result, and the rows of a sparse gradient.
#pragma once
#include <algorithm>

#include "core/selected_rows.h"
#include "ops/declare/checks.h"

namespace anabranch::sparse {

// One row of the table per element of Ids, which is [..., 1] or [...]. InvalidArgument for other shapes.
inline Shape looked_up_shape(const InferContext& c, bool last_is_one, int64_t width) {
  check_ids_dtype(c, "Ids");
  Shape shape = c.in("Ids").shape;
  const int last = shape.rank() - 1;
  if (last_is_one) {
    AB_CHECK(last >= 0 && (shape[last] == 1 || shape[last] == kUnknown), InvalidArgument,
             "Ids must be [..., 1], got {}", shape.str());
    shape.set(last, width);
  } else {
    check_rank(c, "Ids", 0, kMaxRank - 1);
    shape.push_back(width);
  }
  return shape;
}

// The gradients of all ids except `skipped` (null: of all), in order.
template <class T>
void take_rows(const int64_t* ids, int64_t n, const int64_t* skipped, const T* grads, int64_t width,
               SelectedRows* out) {
  const int64_t kept = n - (skipped ? std::count(ids, ids + n, *skipped) : 0);
  out->rows.resize(static_cast<size_t>(kept));
  out->value.resize(Shape{kept, width}, dtype_of<T>);
  T* to = out->value.mutable_data<T>();
  if (kept == n) {
    std::copy(ids, ids + n, out->rows.begin());
    std::copy(grads, grads + n * width, to);
    return;
  }
  size_t k = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] == *skipped) continue;
    to = std::copy(grads + i * width, grads + (i + 1) * width, to);
    out->rows[k++] = ids[i];
  }
}

}  // namespace anabranch::sparse
