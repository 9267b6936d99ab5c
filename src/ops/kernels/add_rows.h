// Adds sparse rows to their table, after adding up repeated ids, as if they were a dense tensor.
#pragma once
#include "core/selected_rows.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// out += rows, of one dtype. `merged` is memory that the caller keeps.
inline void add_rows(const SelectedRows& rows, SelectedRows* merged, Tensor* out) {
  const int64_t width = out->row_elems();
  AB_CHECK(rows.value.shape().rank() > 0 && rows.value.numel() == static_cast<int64_t>(rows.rows.size()) * width,
           ShapeMismatch,
           "sparse rows must have the row width of the tensor that they are added to, got rows {} and tensor {}",
           rows.value.shape().str(), out->shape().str());
  for (const int64_t id : rows.rows) {
    AB_CHECK(id >= 0 && id < out->rows(), InvalidArgument, "sparse rows must name rows of the table, got row {} of {}",
             id, out->rows());
  }
  merge_rows(rows, merged);
  visit_dtype(out->dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = merged->value.data<T>();
    T* to = out->mutable_data<T>();
    for (size_t r = 0; r < merged->rows.size(); ++r) {
      const int64_t id = merged->rows[r];
      const T* row = from + static_cast<int64_t>(r) * width;
      for (int64_t k = 0; k < width; ++k) to[id * width + k] = static_cast<T>(to[id * width + k] + row[k]);
    }
  });
}

}  // namespace anabranch
