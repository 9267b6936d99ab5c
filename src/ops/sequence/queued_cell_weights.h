// CellWeights and CellWeightGradients on devices: kernels assemble and split weights that are not one matrix already.
// Owned by one kernel.
#pragma once
#include "ops/sequence/cell_weights.h"
#include "ops/sequence/queued_blocks.h"
#include "ops/sequence/queued_steps.h"

namespace anabranch::sequence {

class QueuedCellWeights {
 public:
  QueuedCellWeights(const KernelArgs& op, int gates);
  void gather(const DeviceContext& c, int64_t wide, int64_t d);
  Slab<const float> x() const { return x_; }          // missing: X holds the sums
  Slab<const float> state() const { return state_; }  // [D, n D]
  Slab<const float> bias() const { return bias_; }    // missing: none
  int gates() const { return gates_; }
  void add_to_gate(int place, float number) {  // added to its biases, from the next gather() on
    place_ = place;
    number_ = number;
  }
  const QueuedBlocks<float>& blocks() const { return blocks_; }

 private:
  Slab<const float> part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d,
                         device::Scratch& memory);
  Slab<const float> biases(const DeviceContext& c, int64_t d);

  In weights_, biases_;
  int gates_;
  CellLayout layout_;
  QueuedBlocks<float> blocks_;
  device::Scratch x_memory_, state_memory_, bias_memory_;
  Slab<const float> x_, state_, bias_;
  int place_ = 0;
  float number_ = 0.0f;
};

class QueuedCellWeightGradients {
 public:
  QueuedCellWeightGradients(const KernelArgs& op, int gates);
  bool needs_weights(const KernelContext& c) const { return needs(c, weights_); }
  bool needs_biases(const KernelContext& c) const { return needs(c, biases_); }
  // Destinations of the gradients [I, n D], [D, n D] and [n D]; give() passes them on.
  Slab<float> x(const DeviceContext& c, int64_t wide, int64_t d) { return part(c, true, wide, wide, d); }
  Slab<float> state(const DeviceContext& c, int64_t wide, int64_t d) { return part(c, false, d, wide, d); }
  Slab<float> bias(const DeviceContext& c, int64_t d);
  void give_weights(const DeviceContext& c, int64_t wide, int64_t d);
  void give_biases(const DeviceContext& c, int64_t d);

 private:
  static bool needs(const KernelContext& c, Out slot);
  Slab<float> part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d);
  void give_part(const DeviceContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d);

  Out weights_, biases_;
  int gates_;
  CellLayout layout_;
  QueuedBlocks<float> blocks_;
  device::Scratch x_memory_, state_memory_, bias_memory_;
};

}  // namespace anabranch::sequence
