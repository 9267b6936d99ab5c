// What lstm_steps, gru_steps and simple_steps share on devices, as cell_steps.h on the CPU.
#pragma once
#include "ops/device/gemm_by_rows.h"
#include "ops/sequence/queued_cell_weights.h"
#include "ops/sequence/queued_keep.h"

namespace anabranch::sequence {

// The rows of all steps of X: [steps, batch, I] lies in the order of steps; rows of sequences are copied.
class QueuedStepRows {
 public:
  void cut(const KernelContext& c, In x, In h0);
  int64_t rows() const { return steps_.rows(); }
  int64_t wide() const { return wide_; }
  int64_t d() const { return d_; }
  QueuedSteps<float>& steps() { return steps_; }
  const Steps& order() const { return steps_.order(); }

  // Rows that lie as in X, in the order of steps: themselves, or a copy.
  Slab<const float> ordered(const DeviceContext& c, Slab<const float> from, int64_t width, device::Scratch& memory);
  // Where rows in the order of steps are to be made so that finish() can put them where they belong.
  Slab<float> begin(const DeviceContext& c, Slab<float> to, int64_t width, device::Scratch& memory) const;
  void finish(const DeviceContext& c, Slab<const float> made, int64_t width, Slab<float> to);
  // The sum of gradients whose rows lie as in X, in the order of steps; zeros when there are none. Nobody else changes
  // it.
  Slab<float> given(const DeviceContext& c, In gradients, device::Scratch& memory);

 private:
  int64_t wide_ = 0, d_ = 0;
  bool sequences_ = false;
  QueuedSteps<float> steps_;
};

// Where the gradient of a state before the first step is to be added up, from zeros on: the output, or other memory
// when nobody wants it.
Slab<float> first_gradient(const DeviceContext& c, In state, Out wanted, device::Scratch& memory);

class QueuedStepSums {
 public:
  QueuedStepSums(const KernelArgs& op, int gates) : x_(op.in("X")), weights_(op, gates) {}
  // gates [rows, n D] = X by the rows of x + the biases, in the order of steps.
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
  // Before the steps: their weight of the state.
  Slab<const float> state_weight(const DeviceContext& c, const QueuedStepRows& s) {
    weights_.gather(c, s.wide(), s.d());
    return weights_.state();
  }
  // dgates: in the order of steps. of_state(to): puts the gradient of the weight of the state, [D, n D].
  template <class Fn> void give(const DeviceContext& c, QueuedStepRows& s, Slab<const float> dgates, Fn&& of_state) {
    give_x(c, s, dgates);
    if (gradients_.wants_weights(c)) {
      give_weight_of_x(c, s, dgates);
      of_state(gradients_.state(c, s.wide(), s.d()));
      gradients_.give_weights(c, s.wide(), s.d());
    }
    if (gradients_.wants_biases(c)) {
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
