// The steps of an LSTM without projection for float32 on the host: recurrent weights are packed once for all steps, and
// a step is one loop over units that computes the products of a unit's gates and everything that depends on them. Also
// what all kernels of LSTMs read and write. Owned by one kernel; its memory is kept from run to run.
#pragma once
#include "ops/sequence/on.h"
#include "ops/sequence/panels.h"

namespace anabranch::sequence {

// The state that is passed from step to step instead of the hidden state.
template <class T> struct LstmProjection {
  Slab<const T> weight;  // [D, P]; missing: the hidden state itself
  device::ClippedActRule rule = {};
  explicit operator bool() const { return static_cast<bool>(weight); }
};

template <class T> struct LstmWeights {
  Slab<const T> state = {};  // [P, 4 D]
  bool turned = false;       // transposed: [4 D, P]
  Slab<const T> peepholes = {};
  LstmProjection<T> projection = {};
  int64_t p = 0;  // width of the state passed from step to step
};

// Rows of all steps, in order. Without projection, `carried` are the hidden states.
template <class T> struct LstmRows {
  const Steps& order;
  bool backwards = false;  // dense steps from the last one on
  Slab<T> gates = {}, cells = {}, hiddens = {}, carried = {};
  int64_t row_hidden = 0;  // of hiddens and carried, stride in elements; 0: dense
  Slab<const T> first_hidden = {}, first_cell = {};
  Slab<const T> mask = {};  // with a mask, the next step reads the kept states
  Slab<T> kept_hiddens = {}, kept_cells = {};

  int64_t begin(int64_t t) const { return order.begin(backwards ? order.count() - 1 - t : t); }
};

template <class On> struct LstmGradients {
  using T = typename On::Number;
  typename On::Rows& rows;
  bool backwards = false;
  Slab<const T> gates = {}, cells = {}, first_cell = {};
  Slab<const T> carried = {};  // with a projection
  Slab<const T> dresult = {};  // of the states that are passed on, laid out like the tensor
  Slab<T> dcarried = {};       // memory for them in the order of steps; without dresult they are there
  int64_t row_carried = 0;     // of dcarried
  Slab<T> dcells = {};         // changed; missing: zeros
  Slab<const T> factors = {};  // of the gradients of cells, instead of those of clipping
  Slab<T> dgates = {};         // set
  Slab<T> dfirst_hidden = {}, dfirst_cell = {};  // added to; either may be missing
  Slab<const T> mask = {}, kept_cells = {};
  Slab<T> dkept_hiddens = {}, dkept_cells = {};  // changed

  int64_t begin(int64_t t) const { return rows.order().begin(backwards ? rows.order().count() - 1 - t : t); }
};

class LstmPanels {
 public:
  using Gradients = LstmGradients<OnHost<float>>;
  void forward(const KernelContext& c, const device::LstmRule& rule, const LstmWeights<float>& w,
               const LstmRows<float>& r);
  void backward(const KernelContext& c, OnHost<float>::Room& room, const device::LstmRule& rule,
                const LstmWeights<float>& w, Gradients g);

 private:
  void forward(const KernelContext& c, const Band& band, const device::LstmRule& rule, const LstmWeights<float>& w,
               const LstmRows<float>& r) const;
  void step_back(const KernelContext& c, const device::LstmRule& rule, const LstmWeights<float>& w, const Gradients& g,
                 bool two_steps, const BandStep& place) const;

  Panels panels_;
};

}  // namespace anabranch::sequence
