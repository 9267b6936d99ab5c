#include "core/selected_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace anabranch {

void merge_rows(const SelectedRows& in, SelectedRows* out) {
  AB_CHECK(&in != out, Internal, "merge_rows in place");
  const auto n = static_cast<int64_t>(in.rows.size());
  std::vector<int64_t> order(in.rows.size());
  std::iota(order.begin(), order.end(), 0);
  // stable: equal ids keep their order, so the sum of an id is always taken in the same order
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return in.rows[a] < in.rows[b]; });
  out->height = in.height;
  out->rows.clear();
  for (int64_t k = 0; k < n; ++k) {
    if (k == 0 || in.rows[order[k]] != in.rows[order[k - 1]]) out->rows.push_back(in.rows[order[k]]);
  }
  Shape shape = in.value.shape();
  shape.set(0, static_cast<int64_t>(out->rows.size()));
  out->value.resize(shape, in.value.dtype());
  const int64_t width = in.value.row_elems();
  visit_dtype(in.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = in.value.data<T>();
    T* dst = out->value.mutable_data<T>() - width;
    for (int64_t k = 0; k < n; ++k) {
      const T* row = src + order[k] * width;
      if (k == 0 || in.rows[order[k]] != in.rows[order[k - 1]]) {
        dst += width;
        std::copy(row, row + width, dst);
      } else {
        for (int64_t j = 0; j < width; ++j) dst[j] = static_cast<T>(dst[j] + row[j]);
      }
    }
  });
}

}  // namespace anabranch
