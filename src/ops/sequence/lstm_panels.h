// The steps of an LSTM without projection over float32: recurrent weights are packed once for all steps, and a step is
// one loop over units that makes the products of a unit's gates and all that follows from them. Rows are in the order
// of steps. One object belongs to one kernel; its memory is kept from run to run.
#pragma once
#include <array>

#include "ops/sequence/panels.h"
#include "ops/sequence/state_mask.h"
#include "ops/sequence/step_loops.h"

namespace anabranch::sequence {

// Where candidate, input, forget and output stand among the gates of a row.
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
    float* gates;                // [rows, 4 d], x and the biases; become candidate and gates
    const float *hidden, *cell;  // before step 0; null: zeros
    float *hiddens, *cells;      // [rows, d]
    StateMask mask = {};
    float *kept_hiddens = nullptr, *kept_cells = nullptr;  // [rows, d], what the mask leaves for the next step
  };
  struct Backward {
    const float *gates, *cells, *first_cell;  // first_cell: null for zeros
    const float* dhiddens;                    // rows as they lie in the tensor
    float* dcells;                            // is changed
    bool two_steps = false;                   // dcells are zeros, with room for two steps; without a mask
    float* dgates;                            // [rows, 4 d]
    float* dfirst_cell;                       // added to
    float* dfirst_hidden;                     // added to; null: not wanted
    StateMask mask = {};
    const float* kept_cells = nullptr;
    // With a mask, of what it leaves; they are changed, dcells is only read, and dfirst_hidden is there.
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
