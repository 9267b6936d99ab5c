// The steps of a simple recurrence, h[t] = act(x[t] + h[t-1] W), for float32: the weight is packed once for all steps,
// and a step is one loop over units. Rows are in the order of steps. Owned by one kernel; its memory is kept from run
// to run.
#pragma once
#include "ops/sequence/panels.h"
#include "ops/sequence/state_mask.h"

namespace anabranch::sequence {

class SimplePanels {
 public:
  struct Weights {
    const float* state;  // [d, d]
    int64_t d;
    Act act;
  };
  struct Forward {
    float* states;       // [rows, d], x and the bias; replaced by the states
    const float* first;  // before step 0
    StateMask mask = {};
    float* kept = nullptr;  // [rows, d], masked states for the next step
  };
  struct Backward {
    const float* states;
    const float* dstates;
    float* dsums;   // [rows, d], gradients of x
    float* dfirst;  // added to
    StateMask mask = {};
    float* dkept = nullptr;  // with a mask, gradient of the masked states; it is changed
  };

  void forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f);
  void backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b);

 private:
  void forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w, const Forward& f) const;
  void step_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& place) const;

  Panels panels_;
};

}  // namespace anabranch::sequence
