// The steps of gated recurrent units for float32 on the host: weights are packed once for all steps, and a step is two
// loops over units, one up to the reset gates and one from there to the state. Also what all kernels of such units
// read and write. Owned by one kernel; its memory is kept from run to run.
#pragma once
#include "ops/sequence/on.h"
#include "ops/sequence/panels.h"

namespace anabranch::sequence {

template <class T> struct GruWeights {
  Slab<const T> gates, candidate;  // [D, 2 D], [D, D]
  int64_t row_gates, row_candidate;
  // All elements of the gates before those of the candidate, as in gru and gru_unit; or side by side in rows.
  static GruWeights apart(Slab<const T> all, int64_t d) { return {all, all.from(2 * d * d), 2 * d, d}; }
  static GruWeights side_by_side(Slab<const T> all, int64_t d) { return {all, all.from(2 * d), 3 * d, 3 * d}; }
};

// Rows of all steps, in their order. With a mask, the next step reads the kept states.
template <class T> struct GruRows {
  const Steps& order;
  Slab<T> gates = {}, left = {}, states = {};
  Slab<const T> first = {}, mask = {};
  Slab<T> kept = {};
};

template <class T> struct GruGradients {
  const Steps& order;
  Slab<const T> gates = {}, before = {};  // before: the state before each row
  Slab<T> dstates = {};                   // gradients of the outputs; they are changed
  Slab<T> dgates = {}, dfirst = {};       // set; added to
  bool has_first = true;                  // there is a state before step 0
  Slab<const T> mask = {};
  Slab<T> dkept = {};  // changed

  Slab<T> dbefore(int64_t t, int64_t n, int64_t d) const {  // of the states before a step
    return t > 0 ? (mask ? dkept : dstates).rows(order.begin(t - 1), n, d) : dfirst.rows(0, n, d);
  }
};

class GruPanels {
 public:
  void forward(const KernelContext& c, const device::GruRule& rule, const GruWeights<float>& w,
               const GruRows<float>& r);
  void backward(const KernelContext& c, const device::GruRule& rule, const GruWeights<float>& w,
                const GruGradients<float>& g);

 private:
  void forward(const KernelContext& c, const Band& band, const device::GruRule& rule, const GruRows<float>& r) const;
  void step_back(const KernelContext& c, const device::GruRule& rule, const GruGradients<float>& g,
                 const BandStep& place) const;

  Panels of_gates_, of_candidate_;
};

}  // namespace anabranch::sequence
