#include "ops/sequence/blocks.h"

#include <algorithm>
#include <numeric>

#include "ops/sequence/steps.h"

namespace anabranch::sequence {

template <class T>
void BlocksOnHost<T>::move(const KernelContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from,
                           Slab<T> to, int64_t row_to, bool add) const {
  each_row(c, rows, width, [&](int64_t r) {
    if (add) {
      add_to(from.at + r * row_from, width, to.at + r * row_to);
    } else {
      std::copy_n(from.at + r * row_from, width, to.at + r * row_to);
    }
  });
}

template <class T>
void BlocksOnHost<T>::add_number(const KernelContext&, Slab<const T> number, double more, Slab<T> to) const {
  const T x = (number ? *number.at : T{0}) + static_cast<T>(more);
  for (int64_t j = 0; j < to.count; ++j) to.at[j] += x;
}

template <class T> void BlocksOnHost<T>::sum(const KernelContext&, Slab<const T> from, Slab<T> to, bool add) const {
  const T total = std::accumulate(from.at, from.at + from.count, T{0});
  *to.at = add ? *to.at + total : total;
}

template <class T>
void BlocksOnDevice<T>::move(const DeviceContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from,
                             Slab<T> to, int64_t row_to, bool add) const {
  device::BlockArgs a{};
  a.x = from.in();
  a.y = to.out();
  a.rows = rows;
  a.width = width;
  a.row_x = row_from;
  a.row_y = row_to;
  a.step_x = 1;
  a.add = add;
  c.launch(move_, a);
}

template <class T>
void BlocksOnDevice<T>::add_number(const DeviceContext& c, Slab<const T> number, double more, Slab<T> to) const {
  device::BlockArgs a{};
  a.x = number.in();
  a.y = to.out();
  a.rows = 1;
  a.width = to.count;
  a.more = more;
  a.add = 1;
  c.launch(move_, a);
}

template <class T> void BlocksOnDevice<T>::sum(const DeviceContext& c, Slab<const T> from, Slab<T> to, bool add) const {
  device::BlockArgs a{};
  a.x = from.in();
  a.y = to.out();
  a.rows = 1;
  a.width = a.row_x = from.count;
  a.add = add;
  c.launch(sum_, a);
}

template class BlocksOnHost<float>;
template class BlocksOnHost<double>;
template class BlocksOnDevice<float>;
template class BlocksOnDevice<double>;

}  // namespace anabranch::sequence
