#include "ops/sequence/queued_cells.h"

namespace anabranch::sequence {

void QueuedStepRows::cut(const KernelContext& c, In x, In h0) {
  const Shape& shape = c[x].shape();
  sequences_ = shape.rank() == 2;
  wide_ = shape[shape.rank() - 1];
  d_ = c[h0].row_elems();
  if (sequences_) {
    steps_.cut(offsets(c[x]), false);
  } else {
    steps_.cut_dense(shape[0], shape[1]);
  }
}

Slab<const float> QueuedStepRows::ordered(const DeviceContext& c, Slab<const float> from, int64_t width,
                                          device::Scratch& memory) {
  if (!sequences_) return from;
  const Slab<float> to = room_for<float>(c, memory, rows(), width);
  steps_.gather(c, from, width, to);
  return to;
}

Slab<float> QueuedStepRows::begin(const DeviceContext& c, Slab<float> to, int64_t width,
                                  device::Scratch& memory) const {
  return sequences_ ? room_for<float>(c, memory, rows(), width) : to;
}

void QueuedStepRows::finish(const DeviceContext& c, Slab<const float> made, int64_t width, Slab<float> to) {
  if (sequences_) steps_.scatter(c, made, width, to);
}

Slab<float> QueuedStepRows::given(const DeviceContext& c, In gradients, device::Scratch& memory) {
  const Slab<float> to = room_for<float>(c, memory, rows(), d_);
  if (!gradients) fill_zero(c, to);
  for (int i = 0; gradients && i < gradients.count; ++i) {
    const Slab<const float> from = slab<float>(c.at(gradients, i));
    i == 0 ? steps_.gather(c, from, d_, to) : steps_.gather_sum(c, from, d_, to);
  }
  return to;
}

Slab<float> first_gradient(const DeviceContext& c, In state, Out needed, device::Scratch& memory) {
  const Slab<float> to =
      c.needs(needed) ? slab<float>(c, needed) : room_for<float>(c, memory, c[state].rows(), c[state].row_elems());
  fill_zero(c, to);
  return to;
}

void QueuedStepSums::run(const DeviceContext& c, QueuedStepRows& s, Slab<float> gates) {
  weights_.gather(c, s.wide(), s.d());
  const int64_t width = weights_.gates() * s.d();
  const Slab<const float> x = slab<float>(c, x_), bias = weights_.bias();
  if (!weights_.x()) return s.steps().gather(c, x, width, gates, bias);
  if (bias) weights_.blocks().move(c, s.rows(), width, bias, 0, gates, width, false);
  product_.run(c, {.m = s.rows(), .n = width, .k = s.wide()}, s.ordered(c, x, s.wide(), x_rows_), weights_.x(), gates,
               static_cast<bool>(bias));
}

void QueuedStepSumsBack::give_x(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates) {
  if (!c.needs(dx_)) return;
  const Slab<float> to = slab<float>(c, dx_);
  const int64_t width = gates_ * s.d();
  if (!weights_.x()) return s.steps().scatter(c, dgates, width, to);
  const Slab<float> made = s.begin(c, to, s.wide(), dx_rows_);
  to_x_.run(c, {.m = s.rows(), .n = s.wide(), .k = width, .trans_b = true}, dgates, weights_.x(), made, false);
  s.finish(c, made, s.wide(), to);
}

void QueuedStepSumsBack::give_weight_of_x(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates) {
  if (!weights_.x()) return;
  to_weight_.run(c, {.m = s.wide(), .n = gates_ * s.d(), .k = s.rows(), .trans_a = true},
                 s.ordered(c, slab<float>(c, x_), s.wide(), x_rows_), dgates, gradients_.x(c, s.wide(), s.d()), false);
}

}  // namespace anabranch::sequence
