// Weights of a recurrent cell as programs have them - one matrix for all gates or one for each, of x and of the state
// in one piece or apart - as one matrix [I, n D] for x and one [D, n D] for the state, whose columns are the gates by
// their places; and gradients of the two the way back. Matrices that are so already are not copied.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "opdef/kernel_context.h"
#include "opdef/op_def.h"

namespace anabranch::sequence {

// What the rows of a weight are for. kGruUnit: of gru_unit, all elements of two gates before those of the candidate.
enum class WeightRows : int32_t { kX = 0, kState = 1, kXThenState = 2, kStateThenX = 3, kGruUnit = 4 };

struct WeightPart {
  WeightRows rows = WeightRows::kX;
  std::vector<int> places;  // of its gates, in the order of its columns
  bool has_x() const { return rows != WeightRows::kState && rows != WeightRows::kGruUnit; }
  bool has_state() const { return rows != WeightRows::kX; }
  bool has(bool of_x) const { return of_x ? has_x() : has_state(); }
  bool is_whole(int gates) const;  // all gates, each at its place
};

struct CellLayout {
  std::vector<WeightPart> weights;
  std::vector<std::vector<int>> biases;  // places of the gates; a bias of one number belongs to all units of them
  bool sums = false;                     // no weight has rows for x: X holds the sums of the gates
};
// Of the attributes weight_places and bias_places, for a cell of so many gates; InvalidArgument when they say no cell.
CellLayout layout_of(const ir::Op& op, int gates);
// One gate of a weight: where its rows of x, or of the state, begin there and in the matrix of all gates, and how far
// they are apart.
struct GateBlock {
  int64_t own, row_own, all, row_all;
};
GateBlock gate_block(const WeightPart& weight, size_t gate, int gates, bool of_x, int64_t wide, int64_t d);
// The only weight with such rows, when it has all gates where they belong; -1 otherwise.
int whole_weight(const CellLayout& layout, bool of_x, int gates);
// Declares the slots Weights and Biases and those attributes.
void cell_weight_slots(OpDef& def);
// Checks Weights and Biases for x of this width and a state of d.
void check_cell_weights(const InferContext& c, int gates, int64_t wide, int64_t d);

class CellWeights {
 public:
  CellWeights(const KernelArgs& op, int gates);
  void gather(const KernelContext& c, int64_t wide, int64_t d);
  const float* x() const { return x_; }          // null: X holds the sums
  const float* state() const { return state_; }  // [D, n D]
  const float* bias() const { return bias_; }    // null: none
  int gates() const { return gates_; }
  void add_to_gate(int place, float number) {  // to its biases, from the next gather() on
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
  bool wants_weights(const KernelContext& c) const;
  bool wants_biases(const KernelContext& c) const;
  // Where the gradients [I, n D], [D, n D] and [n D] are to be put; give() hands them on.
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
