// Shared by the ops of recurrent cells over all steps (lstm_steps, gru_steps, simple_steps): the contribution of x to
// the sums of the gates, for all steps at once, and the gradients of x, of the weights and of the biases, each one
// product.
#pragma once
#include <memory>

#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/workspace.h"
#include "ops/sequence/cell_weights.h"
#include "ops/sequence/recurrent.h"
#include "ops/sequence/state_mask.h"

namespace anabranch::sequence {

// The rows of all steps of X. [steps, batch, I] is in the order of steps; rows of sequences, [rows, I], are copied to
// that order - step by step, the longest sequence first - and back.
class StepRows {
 public:
  void cut(const KernelContext& c, In x, In h0);
  int64_t rows() const { return rows_; }
  int64_t wide() const { return wide_; }
  int64_t d() const { return d_; }
  bool sequences() const { return sequences_; }
  const Steps& steps() const { return steps_; }

  // Rows laid out like X, in the order of steps: the rows themselves, or a copy in `room`.
  const float* ordered(KernelContext& c, const float* from, int64_t width, Workspace& room) const;
  // Destination for rows in the order of steps, so that finish() can put them in place: `to` itself, or in `room`.
  float* begin(float* to, int64_t width, Workspace& room) const;
  void finish(KernelContext& c, const float* made, int64_t width, float* to) const;
  // The state before each row, from states laid out like X.
  void previous(const KernelContext& c, const float* states, const float* first, float* to) const;

 private:
  int64_t rows_ = 0, wide_ = 0, d_ = 0;
  bool sequences_ = false;
  Steps steps_;
};

// Checks X, Mask, Weights and Biases, and the first states.
void check_steps(const InferContext& c, int gates, std::initializer_list<const char*> first_states);
// Shape [steps, batch, times * D] of an output; [rows, times * D] for sequences.
Shape steps_shape(const InferContext& c, int64_t times = 1);
// An output with a state per row of X, and its LoD.
void set_states(InferContext& c, std::string_view slot);
// Declares X, Mask, Weights, Biases.
void step_slots(OpDef& def);
// For a gradient op: declares those and their gradients.
void step_gradient_slots(OpDef& def);
// Gradients of outputs (lists, which are summed) must have the shape of a state.
void check_state_gradients(const InferContext& c, std::initializer_list<const char*> slots);
void infer_step_gradients(InferContext& c, std::initializer_list<const char*> first_states);

inline StateMask mask_of(const KernelContext& c, In mask) { return {mask ? c[mask].data<float>() : nullptr}; }

// The sum of the gradients in a list, with rows laid out like X; zeros if it is empty.
class GivenGradient {
 public:
  GivenGradient(const KernelArgs& op, const char* slot) : slot_(op.in(slot)) {}
  const float* read(const KernelContext& c, const StepRows& s) const {
    return slot_.count == 1 ? c[slot_].data<float>() : own(c, s);
  }
  // A private copy.
  float* own(const KernelContext& c, const StepRows& s) const;
  // Like own(), in the order of steps.
  float* ordered(KernelContext& c, const StepRows& s, Workspace& room) const;

 private:
  In slot_;
  std::shared_ptr<Tensor> rows_ = std::make_shared<Tensor>();
};

// Accumulator of the gradient of a state before the first step, initially zero: the output, or `rows` if it is not
// requested.
float* first_gradient(KernelContext& c, In state, Out needed, const std::shared_ptr<Tensor>& rows);

class StepSums {
 public:
  StepSums(const KernelArgs& op, int gates) : x_(op.in("X")), weights_(op, gates) {}
  // gates [rows, n D] = X times the rows for x + the biases, in the order of steps.
  void run(KernelContext& c, const StepRows& s, float* gates);
  const float* state_weight() const { return weights_.state(); }
  // A number added to the biases of one gate.
  void add_to_gate(int place, float number) { weights_.add_to_gate(place, number); }

 private:
  In x_;
  CellWeights weights_;
  std::shared_ptr<Gemm<float>> product_ = std::make_shared<Gemm<float>>();
};

class StepSumsBack {
 public:
  StepSumsBack(const KernelArgs& op, int gates)
      : x_(op.in("X")), dx_(op.out("X@GRAD")), gates_(gates), weights_(op, gates), gradients_(op, gates) {}
  // Call before the steps: the weight of the state.
  const float* state_weight(const KernelContext& c, const StepRows& s) {
    weights_.gather(c, s.wide(), s.d());
    return weights_.state();
  }
  // dgates: in the order of steps. of_state(to): puts the gradient of the weight of the state, [D, n D].
  template <class Fn> void give(KernelContext& c, const StepRows& s, const float* dgates, Fn&& of_state) {
    give_x(c, s, dgates);
    if (gradients_.needs_weights(c)) {
      give_weight_of_x(c, s, dgates);
      of_state(gradients_.state(c, s.wide(), s.d()));
      gradients_.give_weights(c, s.wide(), s.d());
    }
    if (gradients_.needs_biases(c)) give_biases(c, s, dgates);
  }

 private:
  void give_x(KernelContext& c, const StepRows& s, const float* dgates);
  void give_weight_of_x(KernelContext& c, const StepRows& s, const float* dgates);
  void give_biases(const KernelContext& c, const StepRows& s, const float* dgates);

  In x_;
  Out dx_;
  int gates_;
  CellWeights weights_;
  CellWeightGradients gradients_;
  std::shared_ptr<Gemm<float>> to_x_ = std::make_shared<Gemm<float>>(), to_weight_ = std::make_shared<Gemm<float>>();
};

}  // namespace anabranch::sequence
