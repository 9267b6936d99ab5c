// Shared by recurrent layers over sequences: activations by name, and the order in which rows are processed. Step t
// takes row t of every sequence that is long enough. Sequences are sorted by descending length, so that the rows of a
// step are contiguous and aligned with those of the previous step: row k of step t follows row k of step t - 1.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ops/kernels/gemm.h"
#include "ops/sequence/acts.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {

Act act_named(const std::string& name);                                  // InvalidArgument for any other name
template <class T> void activate(Act act, T* x, int64_t n);              // in place
template <class T> void act_grad(Act act, const T* y, T* g, int64_t n);  // g becomes g f'(x), where y = f(x)

// An attribute that names an activation.
OpDef& act_attr(OpDef& def, const char* name, const char* preset, const char* what);

// The attributes of gated recurrent units.
OpDef& gru_attrs(OpDef& def);
GruOptions gru_options(const ir::Op& op);

template <class T> T* sized(const std::shared_ptr<Tensor>& t, int64_t rows, int64_t width) {
  t->resize(Shape{rows, width}, dtype_of<T>);
  return t->mutable_data<T>();
}

class Steps {
 public:
  void cut(const Offsets& o, bool reverse);
  void cut_dense(int64_t steps, int64_t batch);  // rows [steps, batch] in place

  int64_t count() const { return static_cast<int64_t>(begin_.size()) - 1; }
  int64_t begin(int64_t t) const { return begin_[static_cast<size_t>(t)]; }
  int64_t rows(int64_t t) const { return begin(t + 1) - begin(t); }
  int64_t widest() const { return count() > 0 ? rows(0) : 0; }
  // The row in the tensor of a position in the order of steps.
  int64_t row(int64_t place) const { return rows_[static_cast<size_t>(place)]; }
  const std::vector<int64_t>& all_rows() const { return rows_; }
  // The sequence of each row of step 0.
  const std::vector<int64_t>& sequences() const { return sequences_; }

 private:
  std::vector<int64_t> rows_;       // of each position in the order of steps
  std::vector<int64_t> sequences_;  // of each row of step 0
  std::vector<int64_t> begin_{0};
};

// Calls fn(row) for the rows of one step.
template <class Fn> void each_row(const KernelContext& c, int64_t rows, int64_t width, Fn&& fn) {
  c.parallel_each(rows, 8192 / std::max<int64_t>(1, width) + 1, [&](int64_t k) { fn(k); });
}

template <class T> void add_to(const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// The optional input Bias, with one number per column of Input.
void check_bias(const InferContext& c);
// The initial state: one row per sequence.
void check_first(const InferContext& c, const char* slot, const char* input, int64_t width);

}  // namespace anabranch::sequence
