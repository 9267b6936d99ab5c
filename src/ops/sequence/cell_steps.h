// Shared by the ops of recurrent cells over all steps (lstm_steps, gru_steps, simple_steps): the contribution of x to
// the sums of the gates, for all steps at once, and the gradients of x, of the weights and of the biases, each one
// product.
#pragma once
#include "ops/sequence/cell_weights.h"

namespace anabranch::sequence {

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

// The rows of all steps of X, [steps, batch, I] in the order of steps; rows of sequences, [rows, I], are copied to that
// order - step by step, the longest sequence first - and back.
template <class On> class StepRows {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  void cut(const KernelContext& c, In x, In h0);
  int64_t rows() const { return steps_.rows(); }
  int64_t wide() const { return wide_; }
  int64_t d() const { return d_; }
  typename On::Rows& steps() { return steps_; }
  const Steps& order() const { return steps_.order(); }

  // Rows laid out like X, in the order of steps: the rows themselves, or a copy.
  Slab<const T> ordered(const C& c, Slab<const T> from, int64_t width, Room& room);
  // Destination for rows in the order of steps, so that finish() can put them in place.
  Slab<T> begin(Slab<T> to, int64_t width, Room& room) const { return sequences_ ? room.rows(rows(), width) : to; }
  void finish(const C& c, Slab<const T> made, int64_t width, Slab<T> to) {
    if (sequences_) steps_.scatter(c, made, width, to);
  }
  // The sum of gradients, laid out like X; zeros if there are none. own: a private copy in the order of steps.
  Slab<const T> given(const C& c, In gradients, Room& room);
  Slab<T> own(const C& c, In gradients, Room& room);
  // The accumulator of the gradient of a state before the first step, initially zero: the output, or other memory if it
  // is not requested.
  Slab<T> first_gradient(const C& c, In state, Out needed, Room& room) const;

 private:
  int64_t wide_ = 0, d_ = 0;
  bool sequences_ = false;
  typename On::Rows steps_;
  typename On::Blocks blocks_;
};

template <class On> class StepSums {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  StepSums(const KernelArgs& op, int gates) : x_(op.in("X")), weights_(op, gates) {}
  // gates [rows, n D] = X times the rows for x + the biases, in the order of steps.
  void run(const C& c, StepRows<On>& s, Room& room, Slab<T> gates);
  Slab<const T> state_weight() const { return weights_.state(); }
  // A number added to the biases of one gate.
  void add_to_gate(int place, float number) { weights_.add_to_gate(place, number); }

 private:
  In x_;
  CellWeights<On> weights_;
  typename On::RowProduct product_;
};

template <class On> class StepSumsBack {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  StepSumsBack(const KernelArgs& op, int gates)
      : x_(op.in("X")), dx_(op.out("X@GRAD")), gates_(gates), weights_(op, gates), gradients_(op, gates) {}
  // Call before the steps: the weight of the state.
  Slab<const T> state_weight(const C& c, const StepRows<On>& s, Room& room) {
    weights_.gather(c, room, s.wide(), s.d());
    return weights_.state();
  }
  // dgates: in the order of steps. of_state(to): puts the gradient of the weight of the state, [D, n D].
  template <class Fn> void give(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates, Fn&& of_state) {
    give_x(c, s, room, dgates);
    if (gradients_.needs_weights(c)) {
      give_weight_of_x(c, s, room, dgates);
      const Slab<T> state = gradients_.part(c, room, false, s.wide(), s.d());
      of_state(state);
      gradients_.give_part(c, state, false, s.wide(), s.d());
    }
    if (gradients_.needs_biases(c)) give_biases(c, s, room, dgates);
  }

 private:
  void give_x(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates);
  void give_weight_of_x(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates);
  void give_biases(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates);

  In x_;
  Out dx_;
  int gates_;
  CellWeights<On> weights_;
  CellWeightGradients<On> gradients_;
  typename On::Product to_x_, to_weight_;
};

extern template class StepRows<OnHost<float>>;
extern template class StepRows<OnDevice<float>>;
extern template class StepSums<OnHost<float>>;
extern template class StepSums<OnDevice<float>>;
extern template class StepSumsBack<OnHost<float>>;
extern template class StepSumsBack<OnDevice<float>>;

}  // namespace anabranch::sequence
