// The steps of gated recurrent units over float32: weights are packed once for all steps, and a step is two loops over
// units, one to the reset gates and one from what they leave to the state. Rows are in the order of steps. One object
// belongs to one kernel; its memory is kept from run to run.
#pragma once
#include "ops/sequence/gru_loops.h"
#include "ops/sequence/panels.h"

namespace anabranch::sequence {

class GruPanels {
 public:
  struct Weights {
    const float* state;  // of the gates [d, 2 d], then of the candidate [d, d]
    int64_t d;
    loops::GruRule rule;
  };
  struct Forward {
    float* gates;        // [rows, 3 d], x and the bias; become gates and candidate
    const float* first;  // before step 0; null: zeros
    float *left, *states;
  };
  struct Backward {
    const float *gates, *states, *first;
    float *dstates, *dgates;
    float* dfirst;  // added to
  };

  void forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f);
  void backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b);

 private:
  void state_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b, int64_t t) const;
  void reset_back(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b, int64_t t) const;
  void first_back(const KernelContext& c, int64_t rows, const Weights& w, const Backward& b) const;

  Panels of_gates_, of_candidate_;
};

}  // namespace anabranch::sequence
