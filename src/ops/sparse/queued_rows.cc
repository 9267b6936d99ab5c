#include "ops/sparse/queued_rows.h"

#include "opdef/device_status.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sparse {

void reports_ids(OpDef& def) { def.with(device_fault(1, "an id of <Ids> must be a row of <W>, got {}")); }

template <class T>
void QueuedRows<T>::launch(const DeviceContext& c, device::SourceRowsArgs& a, int64_t first, SelectedRows* out) const {
  const auto size = static_cast<int64_t>(sizeof(T));
  a.ids = device::ids_of(*out);
  a.ids = {static_cast<int64_t*>(a.ids.address) + first, static_cast<size_t>(a.n) * sizeof(int64_t)};
  a.values = {out->value.mutable_data<T>() + first * a.width, static_cast<size_t>(a.n * a.width * size)};
  c.launch(kernel_, a);
  a.n = 0;
  a.count = 0;
}

template <class T>
void QueuedRows<T>::make(const DeviceContext& c, const std::vector<QueuedSource>& sources, int64_t height,
                         int64_t width, SelectedRows* out) {
  int64_t all = 0, first = 0;
  for (const QueuedSource& s : sources) all += s.ids->numel();
  device::lay_out_rows(c, height, Shape{all, width}, dtype_of<T>, out);
  if (offsets_.empty()) offsets_.resize(sources.size());
  device::SourceRowsArgs a{};
  a.width = width;
  for (size_t k = 0; k < sources.size(); ++k) {
    const QueuedSource& s = sources[k];
    device::RowSource& to = a.sources[a.count++];
    to = {};
    to.ids = device::operand(*s.ids);
    to.grad = device::operand(*s.grads);
    to.begin = a.n;
    to.column = s.column;
    to.per_row = s.per_row;
    to.padding = s.padding;
    to.flags = id_flags(*s.ids, s.padding);
    int64_t rows = s.ids->numel() / s.per_row;
    if (s.pool != Pool::kNone) {
      const auto& offsets = sequence::offsets(*s.ids);
      to.offsets = offsets_[k].of(c, offsets);
      to.sequences = rows = sequence::count(offsets);
      to.mode = pooling_of(s.pool);
    }
    to.stride = rows ? s.grads->numel() / rows : 0;
    a.n += s.ids->numel();
    if (a.count < device::kMostLookups && k + 1 < sources.size()) continue;
    const int64_t made = a.n;
    launch(c, a, first, out);
    first += made;
  }
}

template class QueuedRows<float>;
template class QueuedRows<double>;

}  // namespace anabranch::sparse
