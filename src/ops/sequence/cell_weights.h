// Converts the weights of a recurrent cell in a program - one matrix for all gates or one per gate, for x and the state
// together or separately - to one matrix [I, n D] for x and one [D, n D] for the state, with gates as columns in their
// order; and gradients of both back. Matrices that have this form already are not copied.
#pragma once
#include <string>
#include <vector>

#include "ops/sequence/on.h"

namespace anabranch::sequence {

// The use of a weight's rows. kGruUnit: as in gru_unit, all elements of two gates before those of the candidate.
enum class WeightRows : int32_t { kX = 0, kState = 1, kXThenState = 2, kStateThenX = 3, kGruUnit = 4 };

struct WeightPart {
  WeightRows rows = WeightRows::kX;
  std::vector<int> places;  // positions of its gates, in the order of its columns
  bool has_x() const { return rows != WeightRows::kState && rows != WeightRows::kGruUnit; }
  bool has_state() const { return rows != WeightRows::kX; }
  bool has(bool of_x) const { return of_x ? has_x() : has_state(); }
  bool is_whole(int gates) const;  // has all gates, each in its position
};

struct CellLayout {
  std::vector<WeightPart> weights;
  std::vector<std::vector<int>> biases;  // positions of the gates; a bias of one number is shared by all of their units
  bool sums = false;                     // no weight has rows for x: X holds the sums of the gates
};
// From the attributes weight_places and bias_places, for a cell with `gates` gates; InvalidArgument if they are
// invalid.
CellLayout layout_of(const ir::Op& op, int gates);
// One gate of a weight: where its rows for x, or for the state, start there and in the matrix of all gates, and their
// distance.
struct GateBlock {
  int64_t own, row_own, all, row_all;
};
GateBlock gate_block(const WeightPart& weight, size_t gate, int gates, bool of_x, int64_t wide, int64_t d);
// The only weight with such rows, if all of its gates are in position; -1 otherwise.
int whole_weight(const CellLayout& layout, bool of_x, int gates);
// Declares the slots Weights and Biases and those attributes.
void cell_weight_slots(OpDef& def);
// Checks Weights and Biases for the width of x and d units.
void check_cell_weights(const InferContext& c, int gates, int64_t wide, int64_t d);

template <class On> class CellWeights {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  CellWeights(const KernelArgs& op, int gates)
      : weights_(op.in("Weights")), biases_(op.in("Biases")), gates_(gates), layout_(layout_of(op.op(), gates)) {}
  void gather(const C& c, typename On::Room& room, int64_t wide, int64_t d);
  Slab<const T> x() const { return x_; }          // missing: X holds the sums
  Slab<const T> state() const { return state_; }  // [D, n D]
  Slab<const T> bias() const { return bias_; }    // missing: none
  int gates() const { return gates_; }
  void add_to_gate(int place, float number) {  // added to its biases, from the next gather() on
    place_ = place;
    number_ = number;
  }

 private:
  Slab<const T> part(const C& c, typename On::Room& room, bool of_x, int64_t rows, int64_t wide, int64_t d);
  Slab<const T> biases(const C& c, typename On::Room& room, int64_t d);

  In weights_, biases_;
  int gates_;
  CellLayout layout_;
  typename On::Blocks blocks_;
  Slab<const T> x_, state_, bias_;
  int place_ = 0;
  float number_ = 0.0f;
};

template <class On> class CellWeightGradients {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  CellWeightGradients(const KernelArgs& op, int gates)
      : weights_(op.out("Weights@GRAD")),
        biases_(op.out("Biases@GRAD")),
        gates_(gates),
        layout_(layout_of(op.op(), gates)) {}
  bool needs_weights(const KernelContext& c) const { return needs(c, weights_); }
  bool needs_biases(const KernelContext& c) const { return needs(c, biases_); }
  // A destination of the gradient [I, n D] or [D, n D] of all weights, which give_part() passes on.
  Slab<T> part(const C& c, typename On::Room& room, bool of_x, int64_t wide, int64_t d) const;
  void give_part(const C& c, Slab<const T> all, bool of_x, int64_t wide, int64_t d) const;
  // all: [n D]
  void give_biases(const C& c, Slab<const T> all, int64_t d) const;

 private:
  static bool needs(const KernelContext& c, Out slot);

  Out weights_, biases_;
  int gates_;
  CellLayout layout_;
  typename On::Blocks blocks_;
};

extern template class CellWeights<OnHost<float>>;
extern template class CellWeights<OnDevice<float>>;
extern template class CellWeightGradients<OnHost<float>>;
extern template class CellWeightGradients<OnDevice<float>>;

}  // namespace anabranch::sequence
