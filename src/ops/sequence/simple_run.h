// The steps of a simple recurrence, h[t] = act(x[t] + h[t-1] W), forward and backward. On the host the weight is packed
// once for all steps, and a step is one loop over units; on devices a step is one product and one kernel. Rows are in
// the order of steps. Owned by one kernel; its memory is kept from run to run.
#pragma once
#include "ops/sequence/on.h"
#include "ops/sequence/panels.h"

namespace anabranch::sequence {

template <class T> struct SimpleRows {
  const Steps& order;
  Slab<T> states = {};  // x and the bias; replaced by the states
  Slab<const T> first = {}, mask = {};
  Slab<T> kept = {};  // with a mask, states for the next step
};

template <class T> struct SimpleGradients {
  const Steps& order;
  Slab<const T> states = {};
  Slab<T> dsums = {};   // gradients of the states; replaced by those of the sums
  Slab<T> dfirst = {};  // added to
  Slab<const T> mask = {};
  Slab<T> dkept = {};  // changed
};

template <class On> class SimpleRun {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  explicit SimpleRun(Act act) : rule_{0, 0, static_cast<int32_t>(act), 0} {}
  void forward(const C& c, int64_t d, Slab<const T> weight, const SimpleRows<T>& r);
  void backward(const C& c, int64_t d, Slab<const T> weight, const SimpleGradients<T>& g);

 private:
  void forward_band(const KernelContext& c, const Band& band, const SimpleRows<float>& r) const;
  void band_back(const KernelContext& c, const SimpleGradients<float>& g, const BandStep& place) const;

  device::ClippedActRule rule_;
  typename On::template Cell<ClippedAct> act_;
  typename On::template Cell<ClippedActGrad> act_back_;
  typename On::template Cell<KeepRows> keep_;
  typename On::template Cell<KeepRowsGrad> keep_back_;
  typename On::ProductByRows by_state_;
  Panels panels_;
};

extern template class SimpleRun<OnHost<float>>;
extern template class SimpleRun<OnDevice<float>>;

}  // namespace anabranch::sequence
