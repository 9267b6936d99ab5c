// The steps of an LSTM without projection for float32: recurrent weights are packed once for all steps, and a step is
// one loop over units that computes the products of a unit's gates and everything that depends on them. Rows are in the
// order of steps. Owned by one kernel; its memory is kept from run to run.
#pragma once
#include <array>

#include "ops/sequence/panels.h"
#include "ops/sequence/state_mask.h"
#include "ops/sequence/step_loops.h"

namespace anabranch::sequence {

// Positions of candidate, input, forget and output among the gates of a row.
using GateOrder = std::array<int, 4>;

class LstmPanels {
 public:
  struct Weights {
    const float* state;  // [d, 4 d]
    int64_t d;
    GateOrder order;
    loops::CellRule rule;
  };
  struct Forward {
    float* gates;                // [rows, 4 d], x and the biases; replaced by candidate and gates
    const float *hidden, *cell;  // before step 0; null: zeros
    float *hiddens, *cells;      // [rows, d]
    StateMask mask = {};
    float *kept_hiddens = nullptr, *kept_cells = nullptr;  // [rows, d], masked states for the next step
  };
  struct Backward {
    const float *gates, *cells, *first_cell;  // first_cell: null for zeros
    const float* dhiddens;                    // rows in the layout of the tensor
    float* dcells;                            // is changed
    bool two_steps = false;                   // dcells are zeros, with room for two steps; without a mask
    float* dgates;                            // [rows, 4 d]
    float* dfirst_cell;                       // added to
    float* dfirst_hidden;                     // added to; null: not requested
    StateMask mask = {};
    const float* kept_cells = nullptr;
    // With a mask, gradients of the masked states; they are changed, dcells is only read, and dfirst_hidden is given.
    float *dkept_hiddens = nullptr, *dkept_cells = nullptr;
  };

  void forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f);
  void backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b);

 private:
  void forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w, const Forward& f) const;
  void step_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& s,
                 const BandStep& place) const;

  Panels panels_;
};

}  // namespace anabranch::sequence
