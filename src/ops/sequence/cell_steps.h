// What the ops of recurrent cells over all steps share (lstm_steps, gru_steps): the sums of the gates that x makes, for
// all steps at once, and the gradients of x, of the weights and of the biases, which are one product each.
#pragma once
#include <memory>

#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/cell_weights.h"
#include "ops/sequence/recurrent.h"
#include "ops/sequence/state_mask.h"

namespace anabranch::sequence {

struct StepExtents {
  int64_t steps, batch, wide, d;
  StepExtents(const KernelContext& c, In x, In h0)
      : steps(c[x].shape()[0]), batch(c[x].shape()[1]), wide(c[x].shape()[2]), d(c[h0].row_elems()) {}
  int64_t rows() const { return steps * batch; }
};

// The checks of X, Mask, Weights and Biases, and of the first states.
void check_steps(const InferContext& c, int gates, std::initializer_list<const char*> first_states);
// Shape [steps, batch, times * D] of an output.
Shape steps_shape(const InferContext& c, int64_t times = 1);
// Declares X, Mask, Weights, Biases.
void step_slots(OpDef& def);
// Of a gradient op: declares those and their gradients.
void step_gradient_slots(OpDef& def);
// Gradients of outputs (lists, which are added up) have the shape of a state.
void check_state_gradients(const InferContext& c, std::initializer_list<const char*> slots);
void infer_step_gradients(InferContext& c, std::initializer_list<const char*> first_states);

inline StateMask mask_of(const KernelContext& c, In mask) { return {mask ? c[mask].data<float>() : nullptr}; }

// The sum of the gradients in a list; zeros when there are none. Changed by nobody else when `own` is set.
class GivenGradient {
 public:
  GivenGradient(const KernelArgs& op, const char* slot) : slot_(op.in(slot)) {}
  const float* read(const KernelContext& c, const StepExtents& e) const {
    return slot_.count == 1 ? c[slot_].data<float>() : own(c, e);
  }
  float* own(const KernelContext& c, const StepExtents& e) const;

 private:
  In slot_;
  std::shared_ptr<Tensor> rows_ = std::make_shared<Tensor>();
};

class StepSums {
 public:
  StepSums(const KernelArgs& op, int gates) : x_(op.in("X")), weights_(op, gates) {}
  // gates [rows, n D] = X by the rows of x + the biases.
  void run(const KernelContext& c, const StepExtents& e, float* gates);
  const float* state_weight() const { return weights_.state(); }
  // A number that belongs to the biases of one gate.
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
  // Before the steps: their weight of the state.
  const float* state_weight(const KernelContext& c, const StepExtents& e) {
    weights_.gather(c, e.wide, e.d);
    return weights_.state();
  }
  // of_state(to): puts the gradient of the weight of the state, [D, n D].
  template <class Fn> void give(const KernelContext& c, const StepExtents& e, const float* dgates, Fn&& of_state) {
    give_x(c, e, dgates);
    if (gradients_.wants_weights(c)) {
      give_weight_of_x(c, e, dgates);
      of_state(gradients_.state(c, e.wide, e.d));
      gradients_.give_weights(c, e.wide, e.d);
    }
    if (gradients_.wants_biases(c)) give_biases(c, e, dgates);
  }

 private:
  void give_x(const KernelContext& c, const StepExtents& e, const float* dgates);
  void give_weight_of_x(const KernelContext& c, const StepExtents& e, const float* dgates);
  void give_biases(const KernelContext& c, const StepExtents& e, const float* dgates);

  In x_;
  Out dx_;
  int gates_;
  CellWeights weights_;
  CellWeightGradients gradients_;
  std::shared_ptr<Gemm<float>> to_x_ = std::make_shared<Gemm<float>>(), to_weight_ = std::make_shared<Gemm<float>>();
};

}  // namespace anabranch::sequence
