// Converts the weights of a recurrent cell in a program - one matrix for all gates or one per gate, for x and the state
// together or separately - to one matrix [I, n D] for x and one [D, n D] for the state, with gates as columns in their
// order; and gradients of both back. Matrices that have this form already are not copied.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "opdef/kernel_context.h"
#include "opdef/op_def.h"

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

class CellWeights {
 public:
  CellWeights(const KernelArgs& op, int gates);
  void gather(const KernelContext& c, int64_t wide, int64_t d);
  const float* x() const { return x_; }          // null: X holds the sums
  const float* state() const { return state_; }  // [D, n D]
  const float* bias() const { return bias_; }    // null: none
  int gates() const { return gates_; }
  void add_to_gate(int place, float number) {  // added to its biases, from the next gather() on
    place_ = place;
    number_ = number;
  }

 private:
  const float* part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d,
                    const std::shared_ptr<Tensor>& memory);
  const float* biases(const KernelContext& c, int64_t d);

  In weights_, biases_;
  int gates_;
  CellLayout layout_;
  std::shared_ptr<Tensor> x_memory_ = std::make_shared<Tensor>(), state_memory_ = std::make_shared<Tensor>(),
                          bias_memory_ = std::make_shared<Tensor>();
  const float *x_ = nullptr, *state_ = nullptr, *bias_ = nullptr;
  int place_ = 0;
  float number_ = 0.0f;
};

class CellWeightGradients {
 public:
  CellWeightGradients(const KernelArgs& op, int gates);
  bool needs_weights(const KernelContext& c) const;
  bool needs_biases(const KernelContext& c) const;
  // Destinations of the gradients [I, n D], [D, n D] and [n D]; give() passes them on.
  float* x(const KernelContext& c, int64_t wide, int64_t d) const { return part(c, true, wide, wide, d); }
  float* state(const KernelContext& c, int64_t wide, int64_t d) const { return part(c, false, d, wide, d); }
  float* bias(int64_t d) const;
  void give_weights(const KernelContext& c, int64_t wide, int64_t d) const;
  void give_biases(const KernelContext& c, int64_t d) const;

 private:
  float* part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) const;
  void give_part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) const;

  Out weights_, biases_;
  int gates_;
  CellLayout layout_;
  std::shared_ptr<Tensor> x_memory_ = std::make_shared<Tensor>(), state_memory_ = std::make_shared<Tensor>(),
                          bias_memory_ = std::make_shared<Tensor>();
};

}  // namespace anabranch::sequence
