#include "ops/sequence/queued_cell_weights.h"

namespace anabranch::sequence {

QueuedCellWeights::QueuedCellWeights(const KernelArgs& op, int gates)
    : weights_(op.in("Weights")), biases_(op.in("Biases")), gates_(gates), layout_(layout_of(op.op(), gates)) {}

void QueuedCellWeights::gather(const DeviceContext& c, int64_t wide, int64_t d) {
  x_ = layout_.sums ? Slab<const float>{} : part(c, true, wide, wide, d, x_memory_);
  state_ = part(c, false, d, wide, d, state_memory_);
  bias_ = layout_.biases.empty() && number_ == 0.0f ? Slab<const float>{} : biases(c, d);
}

Slab<const float> QueuedCellWeights::part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d,
                                          device::Scratch& memory) {
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0) {
    const int64_t begin = gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
    return slab<float>(c.at(weights_, i)).part(begin, rows * gates_ * d);
  }
  const Slab<float> all = room_for<float>(c, memory, rows, gates_ * d);
  fill_zero(c, all);
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    const WeightPart& weight = layout_.weights[i];
    if (!weight.has(of_x)) continue;
    const Slab<const float> from = slab<float>(c.at(weights_, static_cast<int>(i)));
    for (size_t g = 0; g < weight.places.size(); ++g) {
      const GateBlock at = gate_block(weight, g, gates_, of_x, wide, d);
      blocks_.move(c, rows, d, from.from(at.own), at.row_own, all.from(at.all), at.row_all, true);
    }
  }
  return all;
}

Slab<const float> QueuedCellWeights::biases(const DeviceContext& c, int64_t d) {
  const Slab<float> all = room_for<float>(c, bias_memory_, 1, gates_ * d);
  fill_zero(c, all);
  if (number_ != 0.0f) blocks_.add_number(c, {}, number_, all.rows(place_, 1, d));
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    const Slab<const float> bias = slab<float>(c.at(biases_, static_cast<int>(i)));
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      const Slab<float> to = all.rows(layout_.biases[i][g], 1, d);
      if (bias.count == 1) {
        blocks_.add_number(c, bias, 0, to);
      } else {
        blocks_.move(c, 1, d, bias.rows(static_cast<int64_t>(g), 1, d), d, to, d, true);
      }
    }
  }
  return all;
}

QueuedCellWeightGradients::QueuedCellWeightGradients(const KernelArgs& op, int gates)
    : weights_(op.out("Weights@GRAD")),
      biases_(op.out("Biases@GRAD")),
      gates_(gates),
      layout_(layout_of(op.op(), gates)) {}

bool QueuedCellWeightGradients::needs(const KernelContext& c, Out slot) {
  for (int i = 0; i < slot.count; ++i) {
    if (c.needs(slot, i)) return true;
  }
  return false;
}

Slab<float> QueuedCellWeightGradients::part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) {
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0 && c.needs(weights_, i)) {
    const int64_t begin = gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
    return slab<float>(c.at(weights_, i)).part(begin, rows * gates_ * d);
  }
  return room_for<float>(c, of_x ? x_memory_ : state_memory_, rows, gates_ * d);
}

Slab<float> QueuedCellWeightGradients::bias(const DeviceContext& c, int64_t d) {
  return room_for<float>(c, bias_memory_, 1, gates_ * d);
}

void QueuedCellWeightGradients::give_weights(const DeviceContext& c, int64_t wide, int64_t d) {
  if (!layout_.sums) give_part(c, true, wide, wide, d);
  give_part(c, false, d, wide, d);
}

void QueuedCellWeightGradients::give_part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) {
  if (whole_weight(layout_, of_x, gates_) >= 0) return;  // they are in place
  const Slab<const float> all = part(c, of_x, rows, wide, d);
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    const WeightPart& weight = layout_.weights[i];
    if (!weight.has(of_x) || !c.needs(weights_, static_cast<int>(i))) continue;
    const Slab<float> to = slab<float>(c.at(weights_, static_cast<int>(i)));
    for (size_t g = 0; g < weight.places.size(); ++g) {
      const GateBlock at = gate_block(weight, g, gates_, of_x, wide, d);
      blocks_.move(c, rows, d, all.from(at.all), at.row_all, to.from(at.own), at.row_own, false);
    }
  }
}

void QueuedCellWeightGradients::give_biases(const DeviceContext& c, int64_t d) {
  const Slab<const float> all = bias(c, d);
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    if (!c.needs(biases_, static_cast<int>(i))) continue;
    const Slab<float> to = slab<float>(c.at(biases_, static_cast<int>(i)));
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      const Slab<const float> from = all.rows(layout_.biases[i][g], 1, d);
      if (to.count == 1) {
        blocks_.sum(c, from, to, g > 0);
      } else {
        blocks_.move(c, 1, d, from, d, to.rows(static_cast<int64_t>(g), 1, d), d, false);
      }
    }
  }
}

}  // namespace anabranch::sequence
