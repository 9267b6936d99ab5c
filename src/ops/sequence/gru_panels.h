// The steps of gated recurrent units for float32: weights are packed once for all steps, and a step is two loops over
// units, one up to the reset gates and one from there to the state. Rows are in the order of steps. Owned by one
// kernel; its memory is kept from run to run.
#pragma once
#include "ops/sequence/gru_loops.h"
#include "ops/sequence/panels.h"
#include "ops/sequence/state_mask.h"

namespace anabranch::sequence {

class GruPanels {
 public:
  struct Weights {
    const float* gates;  // [d, 2 d], rows ld_gates apart
    int64_t ld_gates;
    const float* candidate;  // [d, d], rows ld_candidate apart
    int64_t ld_candidate;
    int64_t d;
    loops::GruRule rule;
    // For the ops gru and gru_unit: all elements of the gates, then those of the candidate.
    static Weights of_gru(const float* weight, int64_t d, const loops::GruRule& rule) {
      return {weight, 2 * d, weight + 2 * d * d, d, d, rule};
    }
  };
  struct Forward {
    float* gates;        // [rows, 3 d], x and the bias; replaced by gates and candidate
    const float* first;  // before step 0; null: zeros
    float *left, *states;
    StateMask mask = {};
    float* kept = nullptr;  // [rows, d], masked states for the next step
  };
  struct Backward {
    const float *gates, *states, *first;
    float *dstates, *dgates;
    float* dfirst;  // added to
    StateMask mask = {};
    const float* kept = nullptr;
    float* dkept = nullptr;  // with a mask, gradient of the masked states; it is changed, and dstates is only read
    // The states before the rows from `row` on of step t; in the order of steps they start at `past`.
    const float* before(int64_t t, int64_t past, int64_t row, int64_t d) const {
      return t > 0 ? (mask ? kept : states) + past * d : first ? first + row * d : nullptr;
    }
    float* dbefore(int64_t t, int64_t past, int64_t row, int64_t d) const {
      return t > 0 ? (mask ? dkept : dstates) + past * d : dfirst + row * d;
    }
  };

  void forward(const KernelContext& c, const Steps& steps, const Weights& w, const Forward& f);
  void backward(const KernelContext& c, const Steps& steps, const Weights& w, const Backward& b);

 private:
  void forward(const KernelContext& c, const Steps& steps, const Band& band, const Weights& w, const Forward& f) const;
  void state_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& at) const;
  void reset_back(const KernelContext& c, const Weights& w, const Backward& b, const BandStep& at) const;

  Panels of_gates_, of_candidate_;
};

}  // namespace anabranch::sequence
