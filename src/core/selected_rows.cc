#include "core/selected_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace anabranch {

void merge_rows(const SelectedRows& in, SelectedRows* out) {
  AB_CHECK(&in != out, Internal, "merge_rows in place");
  const size_t n = in.rows.size();
  // The output's ids hold the order of the input's rows until an id takes their place: no memory but the output's own.
  std::vector<int64_t>& order = out->rows;
  order.resize(n);
  std::iota(order.begin(), order.end(), 0);
  // Equal ids keep their order, so the sum of an id is always taken in the same order.
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return in.rows[a] != in.rows[b] ? in.rows[a] < in.rows[b] : a < b; });
  size_t distinct = 0;
  for (size_t k = 0; k < n; ++k) distinct += k == 0 || in.rows[order[k]] != in.rows[order[k - 1]];
  out->height = in.height;
  Shape shape = in.value.shape();
  shape.set(0, static_cast<int64_t>(distinct));
  out->value.resize(shape, in.value.dtype());
  const int64_t width = in.value.row_elems();
  visit_dtype(in.value.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = in.value.data<T>();
    T* dst = out->value.mutable_data<T>() - width;
    size_t last = 0;
    for (size_t k = 0; k < n; ++k) {
      const int64_t id = in.rows[order[k]];
      const T* row = src + order[k] * width;
      if (k > 0 && order[last] == id) {
        for (int64_t j = 0; j < width; ++j) dst[j] = static_cast<T>(dst[j] + row[j]);
        continue;
      }
      dst += width;
      std::copy(row, row + width, dst);
      last += k > 0;
      order[last] = id;
    }
  });
  out->rows.resize(distinct);
}

}  // namespace anabranch
