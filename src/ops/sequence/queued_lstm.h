// The steps of an LSTM on devices, forward and backward: one product and one kernel per step, for lstm, lstmp,
// lstm_steps and cudnn_lstm. Owned by one kernel.
#pragma once
#include "ops/device/gemm_by_rows.h"
#include "ops/sequence/queued_keep.h"
#include "ops/sequence/queued_steps.h"

namespace anabranch::sequence {

// The state that is passed from step to step instead of the hidden state.
template <class T> struct LstmProjection {
  Slab<const T> weight;  // [D, P]; missing: the hidden state itself
  Act act = Act::kIdentity;
  double clip = 0;
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
  Kept<T> kept_hiddens = {}, kept_cells = {};

  int64_t begin(int64_t t) const { return order.begin(backwards ? order.count() - 1 - t : t); }
};

template <class T> struct LstmGradients {
  const Steps& order;
  bool backwards = false;
  Slab<const T> gates = {}, cells = {}, first_cell = {};
  Slab<const T> carried = {}, kept_cells = {};   // with a projection; with a mask
  Slab<T> dcarried = {}, dcells = {};            // gradients of the outputs; they are changed
  int64_t row_carried = 0;                       // of dcarried
  Slab<T> dgates = {};                           // set
  Slab<T> dfirst_hidden = {}, dfirst_cell = {};  // added to; either may be missing
  KeptGradient<T> dkept_hiddens = {}, dkept_cells = {};

  int64_t begin(int64_t t) const { return order.begin(backwards ? order.count() - 1 - t : t); }
};

template <class T> class QueuedLstm {
 public:
  explicit QueuedLstm(const device::LstmRule& rule) : rule_(rule) {}
  void forward(const DeviceContext& c, int64_t d, const LstmWeights<T>& w, const LstmRows<T>& r);
  void backward(const DeviceContext& c, int64_t d, const LstmWeights<T>& w, const LstmGradients<T>& r);

 private:
  void step(const DeviceContext& c, int64_t t, const LstmWeights<T>& w, const LstmRows<T>& r);
  void project(const DeviceContext& c, int64_t at, int64_t n, const LstmWeights<T>& w, const LstmRows<T>& r);
  void step_back(const DeviceContext& c, int64_t t, const LstmWeights<T>& w, const LstmGradients<T>& r);
  Slab<const T> through_projection(const DeviceContext& c, int64_t at, int64_t n, const LstmWeights<T>& w,
                                   const LstmGradients<T>& r);

  device::LstmRule rule_;
  device::Scratch part_;
  Slab<T> part_rows_;
  ab_kernel cell_ = device::kernel_of<T>("lstm_cell"), cell_back_ = device::kernel_of<T>("lstm_cell_grad"),
            act_ = device::kernel_of<T>("clipped_act"), act_back_ = device::kernel_of<T>("clipped_act_grad");
  QueuedKeep<T> keep_;
  device::GemmByRows<T> by_state_, by_first_, by_projection_;  // by_first_: at step 0, whose layout may differ
};

extern template class QueuedLstm<float>;
extern template class QueuedLstm<double>;

}  // namespace anabranch::sequence
