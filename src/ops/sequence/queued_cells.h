// Shared by lstm_steps, gru_steps and simple_steps on devices, like cell_steps.h on the CPU.
#pragma once
#include "ops/device/gemm_by_rows.h"
#include "ops/sequence/queued_cell_weights.h"
#include "ops/sequence/queued_keep.h"

namespace anabranch::sequence {

// The rows of all steps of X: [steps, batch, I] is in the order of steps; rows of sequences are copied.
class QueuedStepRows {
 public:
  void cut(const KernelContext& c, In x, In h0);
  int64_t rows() const { return steps_.rows(); }
  int64_t wide() const { return wide_; }
  int64_t d() const { return d_; }
  QueuedSteps<float>& steps() { return steps_; }
  const Steps& order() const { return steps_.order(); }

  // Rows laid out like X, in the order of steps: the rows themselves, or a copy.
  Slab<const float> ordered(const DeviceContext& c, Slab<const float> from, int64_t width, device::Scratch& memory);
  // Destination for rows in the order of steps, so that finish() can put them in place.
  Slab<float> begin(const DeviceContext& c, Slab<float> to, int64_t width, device::Scratch& memory) const;
  void finish(const DeviceContext& c, Slab<const float> made, int64_t width, Slab<float> to);
  // The sum of gradients with rows laid out like X, in the order of steps; zeros if there are none. A private copy.
  Slab<float> given(const DeviceContext& c, In gradients, device::Scratch& memory);

 private:
  int64_t wide_ = 0, d_ = 0;
  bool sequences_ = false;
  QueuedSteps<float> steps_;
};

// Accumulator of the gradient of a state before the first step, initially zero: the output, or other memory if it is
// not requested.
Slab<float> first_gradient(const DeviceContext& c, In state, Out needed, device::Scratch& memory);

class QueuedStepSums {
 public:
  QueuedStepSums(const KernelArgs& op, int gates) : x_(op.in("X")), weights_(op, gates) {}
  // gates [rows, n D] = X times the rows for x + the biases, in the order of steps.
  void run(const DeviceContext& c, QueuedStepRows& s, Slab<float> gates);
  Slab<const float> state_weight() const { return weights_.state(); }
  void add_to_gate(int place, float number) { weights_.add_to_gate(place, number); }

 private:
  In x_;
  QueuedCellWeights weights_;
  device::Scratch x_rows_;
  device::PartGemm<float> product_;
};

class QueuedStepSumsBack {
 public:
  QueuedStepSumsBack(const KernelArgs& op, int gates)
      : x_(op.in("X")), dx_(op.out("X@GRAD")), gates_(gates), weights_(op, gates), gradients_(op, gates) {}
  // Call before the steps: the weight of the state.
  Slab<const float> state_weight(const DeviceContext& c, const QueuedStepRows& s) {
    weights_.gather(c, s.wide(), s.d());
    return weights_.state();
  }
  // dgates: in the order of steps. of_state(to): writes the gradient of the weight of the state, [D, n D].
  template <class Fn> void give(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates, Fn&& of_state) {
    give_x(c, s, dgates);
    if (gradients_.needs_weights(c)) {
      give_weight_of_x(c, s, dgates);
      of_state(gradients_.state(c, s.wide(), s.d()));
      gradients_.give_weights(c, s.wide(), s.d());
    }
    if (gradients_.needs_biases(c)) {
      s.steps().column_sums(c, dgates, gates_ * s.d(), gates_ * s.d(), gradients_.bias(c, s.d()));
      gradients_.give_biases(c, s.d());
    }
  }

 private:
  void give_x(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates);
  void give_weight_of_x(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates);

  In x_;
  Out dx_;
  int gates_;
  QueuedCellWeights weights_;
  QueuedCellWeightGradients gradients_;
  device::Scratch dx_rows_, x_rows_;
  device::PartGemm<float> to_x_, to_weight_;
};

}  // namespace anabranch::sequence
