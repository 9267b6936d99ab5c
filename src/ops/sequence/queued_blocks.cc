#include "ops/sequence/queued_blocks.h"

namespace anabranch::sequence {

template <class T>
void QueuedBlocks<T>::move(const DeviceContext& c, int64_t rows, int64_t width, Slab<const T> from, int64_t row_from,
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
void QueuedBlocks<T>::add_number(const DeviceContext& c, Slab<const T> number, double more, Slab<T> to) const {
  device::BlockArgs a{};
  a.x = number.in();
  a.y = to.out();
  a.rows = 1;
  a.width = to.count;
  a.more = more;
  a.add = 1;
  c.launch(move_, a);
}

template <class T> void QueuedBlocks<T>::sum(const DeviceContext& c, Slab<const T> from, Slab<T> to, bool add) const {
  device::BlockArgs a{};
  a.x = from.in();
  a.y = to.out();
  a.rows = 1;
  a.width = a.row_x = from.count;
  a.add = add;
  c.launch(sum_, a);
}

template class QueuedBlocks<float>;
template class QueuedBlocks<double>;

}  // namespace anabranch::sequence
