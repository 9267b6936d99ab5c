// The steps of gated recurrent units on devices, forward and backward: two products and two kernels per step, for gru,
// gru_unit and gru_steps. Owned by one kernel.
#pragma once
#include "ops/device/gemm_by_rows.h"
#include "ops/sequence/queued_keep.h"
#include "ops/sequence/queued_steps.h"

namespace anabranch::sequence {

template <class T> struct GruWeights {
  Slab<const T> gates, candidate;  // [D, 2 D], [D, D]
  int64_t row_gates, row_candidate;
  // All elements of the gates before those of the candidate, as in gru and gru_unit; or side by side in rows.
  static GruWeights apart(Slab<const T> all, int64_t d) { return {all, all.from(2 * d * d), 2 * d, d}; }
  static GruWeights side_by_side(Slab<const T> all, int64_t d) { return {all, all.from(2 * d), 3 * d, 3 * d}; }
};

// Rows of all steps, in their order.
template <class T> struct GruRows {
  const Steps& order;
  Slab<T> gates = {}, left = {}, states = {};
  Slab<const T> first = {};
  Kept<T> kept = {};
};

template <class T> struct GruGradients {
  const Steps& order;
  Slab<const T> gates = {}, before = {};  // before: the state before each row
  Slab<T> dstates = {};                   // gradients of the outputs; they are changed
  Slab<T> dgates = {}, dfirst = {};       // set; added to
  bool has_first = true;                  // there is a state before step 0
  KeptGradient<T> dkept = {};
};

template <class T> class QueuedGru {
 public:
  explicit QueuedGru(const GruOptions& rule) : rule_(rule) {}
  void forward(const DeviceContext& c, int64_t d, const GruWeights<T>& w, const GruRows<T>& r);
  void backward(const DeviceContext& c, int64_t d, const GruWeights<T>& w, const GruGradients<T>& r);
  // The gradients of the weights, from all rows at once, in the layout that w describes.
  void backward_weight(const DeviceContext& c, int64_t rows, int64_t d, Slab<const T> before, Slab<const T> left,
                       Slab<const T> dgates, const GruWeights<T>& w, Slab<T> to);

 private:
  void step(const DeviceContext& c, int64_t d, int64_t n, const GruWeights<T>& w, Slab<T> gates, Slab<const T> before,
            Slab<T> left, Slab<T> state);
  void step_back(const DeviceContext& c, int64_t d, int64_t t, const GruWeights<T>& w, const GruGradients<T>& r);

  GruOptions rule_;
  device::Scratch part_;
  Slab<T> part_rows_;
  ab_kernel gates_ = device::kernel_of<T>("gru_gates"), state_ = device::kernel_of<T>("gru_state"),
            state_back_ = device::kernel_of<T>("gru_state_grad"), reset_back_ = device::kernel_of<T>("gru_reset_grad");
  QueuedKeep<T> keep_;
  device::GemmByRows<T> by_gates_, by_candidate_;
  device::PartGemm<T> to_gates_, to_candidate_;
};

extern template class QueuedGru<float>;
extern template class QueuedGru<double>;

}  // namespace anabranch::sequence
