// The steps of gated recurrent units, forward and backward, for gru, gru_unit, gru_steps and fusion_gru: two products
// and two kernels per step; on the host in float32, GruPanels. Owned by one kernel.
#pragma once
#include "ops/sequence/gru_panels.h"

namespace anabranch::sequence {

template <class On> class GruRun {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  // packs: on the host in float32 weights are packed, which is worth it for several steps.
  explicit GruRun(const GruOptions& with, bool packs = true)
      : packs_(packs),
        rule_{0, static_cast<int32_t>(with.gate), static_cast<int32_t>(with.candidate), with.origin, 0} {}
  void forward(const C& c, int64_t d, const GruWeights<T>& w, const GruRows<T>& r);
  void backward(const C& c, typename On::Room& room, int64_t d, const GruWeights<T>& w, const GruGradients<T>& g);
  // The gradients of the weights, from all rows at once, in the layout that w describes.
  void backward_weight(const C& c, int64_t rows, int64_t d, Slab<const T> before, Slab<const T> left,
                       Slab<const T> dgates, const GruWeights<T>& w, Slab<T> to);

 private:
  void step(const C& c, int64_t t, const GruWeights<T>& w, const GruRows<T>& r);
  void step_back(const C& c, int64_t t, const GruWeights<T>& w, const GruGradients<T>& g, Slab<T> dleft);

  bool packs_;
  device::GruRule rule_;
  typename On::template Cell<GruGates> gates_;
  typename On::template Cell<GruState> state_;
  typename On::template Cell<GruStateGrad> state_back_;
  typename On::template Cell<GruResetGrad> reset_back_;
  typename On::template Cell<KeepRows> keep_;
  typename On::template Cell<KeepRowsGrad> keep_back_;
  typename On::ProductByRows by_gates_, by_candidate_;
  typename On::Product to_gates_, to_candidate_;
  GruPanels panels_;
};

extern template class GruRun<OnHost<float>>;
extern template class GruRun<OnHost<double>>;
extern template class GruRun<OnDevice<float>>;
extern template class GruRun<OnDevice<double>>;

}  // namespace anabranch::sequence
