// The steps of an LSTM, forward and backward, for lstm, lstmp, lstm_steps, cudnn_lstm and fusion_lstm: one product and
// one cell kernel per step; on the host in float32 without a projection, LstmPanels. Owned by one kernel.
#pragma once
#include "ops/sequence/lstm_panels.h"

namespace anabranch::sequence {

template <class On> class LstmRun {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  explicit LstmRun(const device::LstmRule& rule) : rule_(rule) {}
  void forward(const C& c, int64_t d, const LstmWeights<T>& w, const LstmRows<T>& r);
  void backward(const C& c, Room& room, int64_t d, const LstmWeights<T>& w, LstmGradients<On> g);

 private:
  void step(const C& c, int64_t t, const LstmWeights<T>& w, const LstmRows<T>& r);
  void step_back(const C& c, int64_t t, const LstmWeights<T>& w, const LstmGradients<On>& g);
  // The gradients of the hidden states of a step.
  Slab<const T> through_projection(const C& c, int64_t at, int64_t n, const LstmWeights<T>& w,
                                   const LstmGradients<On>& g);

  device::LstmRule rule_;
  Slab<T> dhiddens_;  // of one step
  typename On::template Cell<LstmCell> cell_;
  typename On::template Cell<LstmCellGrad> cell_back_;
  typename On::template Cell<ClippedAct> act_;
  typename On::template Cell<ClippedActGrad> act_back_;
  typename On::template Cell<KeepRows> keep_;
  typename On::template Cell<KeepRowsGrad> keep_back_;
  typename On::ProductByRows by_state_, by_first_, by_projection_;  // by_first_: at step 0, whose layout may differ
  LstmPanels panels_;
};

extern template class LstmRun<OnHost<float>>;
extern template class LstmRun<OnHost<double>>;
extern template class LstmRun<OnDevice<float>>;
extern template class LstmRun<OnDevice<double>>;

// A rule with the gates of a row in this order: candidate, input, forget, output.
inline device::LstmRule lstm_rule(Act gate, Act candidate, Act cell, const std::array<int, 4>& places,
                                  double clip = 0) {
  return {0,
          clip,
          0,
          {places[0], places[1], places[2], places[3]},
          static_cast<int32_t>(candidate),
          static_cast<int32_t>(gate),
          static_cast<int32_t>(cell),
          0};
}

}  // namespace anabranch::sequence
