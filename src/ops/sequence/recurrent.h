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

  // Rows of a tensor with sequences, in the order of steps, and back.
  template <class T> void gather(KernelContext& c, const T* from, int64_t width, T* to) const {
    copy_rows(c, from, width, to, rows_, true);
  }
  template <class T> void scatter(KernelContext& c, const T* from, int64_t width, T* to) const {
    copy_rows(c, from, width, to, rows_, false);
  }
  // Like gather, with `bias` (null: none) added to each row.
  template <class T> void gather_add(KernelContext& c, const T* from, const T* bias, int64_t width, T* to) const {
    const auto n = static_cast<int64_t>(rows_.size());
    c.parallel_for(n, row_grain(width), [=, this](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const T* row = from + rows_[static_cast<size_t>(p)] * width;
        if (!bias) {
          std::copy(row, row + width, to + p * width);
          continue;
        }
        for (int64_t j = 0; j < width; ++j) to[p * width + j] = row[j] + bias[j];
      }
    });
  }
  // One row per sequence, in the order of step 0, and back. Empty sequences are not included. first: an optional state,
  // into `rows`; null if it is not given.
  template <class T> void gather_first(KernelContext& c, const T* from, int64_t width, T* to) const {
    copy_rows(c, from, width, to, sequences_, true);
  }
  template <class T>
  const T* first(KernelContext& c, In state, int64_t width, const std::shared_ptr<Tensor>& rows) const {
    if (!state) return nullptr;
    T* to = sized<T>(rows, widest(), width);
    gather_first(c, c[state].data<T>(), width, to);
    return to;
  }
  template <class T> void scatter_first(KernelContext& c, const T* from, int64_t width, T* to) const {
    copy_rows(c, from, width, to, sequences_, false);
  }
  // The row before each row, in the order of steps: `first` (or zeros) before step 0.
  template <class T> void previous(const KernelContext& c, const T* rows, const T* first, int64_t width, T* to) const {
    const int64_t n = widest();
    if (count() == 0) return;
    begin_with(first, n * width, to);
    c.parallel_for(count() - 1, row_grain(n * width), [&](int64_t b, int64_t e) {
      for (int64_t t = b + 1; t <= e; ++t) {
        std::copy(rows + begin(t - 1) * width, rows + (begin(t - 1) + this->rows(t)) * width, to + begin(t) * width);
      }
    });
  }
  // The same for rows laid out like the tensor.
  template <class T>
  void gather_previous(const KernelContext& c, const T* from, const T* first, int64_t width, T* to) const {
    const int64_t n = widest();
    if (count() == 0) return;
    begin_with(first, n * width, to);
    c.parallel_for(count() - 1, row_grain(n * width), [&](int64_t b, int64_t e) {
      for (int64_t t = b + 1; t <= e; ++t) {
        for (int64_t k = 0; k < this->rows(t); ++k) {
          std::copy_n(from + row(begin(t - 1) + k) * width, width, to + (begin(t) + k) * width);
        }
      }
    });
  }

 private:
  template <class T> static void begin_with(const T* first, int64_t n, T* to) {
    if (first) {
      std::copy_n(first, n, to);
    } else {
      std::fill_n(to, n, T{0});
    }
  }
  static int64_t row_grain(int64_t width) { return 16384 / std::max<int64_t>(1, width) + 1; }
  template <class T>
  static void copy_rows(KernelContext& c, const T* from, int64_t width, T* to, const std::vector<int64_t>& places,
                        bool gather) {
    const auto n = static_cast<int64_t>(places.size());
    c.parallel_for(n, row_grain(width), [=, &places](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const int64_t at = places[static_cast<size_t>(p)];
        const T* row = from + (gather ? at : p) * width;
        std::copy(row, row + width, to + (gather ? p : at) * width);
      }
    });
  }

  std::vector<int64_t> rows_;       // of each position in the order of steps
  std::vector<int64_t> sequences_;  // of each row of step 0
  std::vector<int64_t> begin_{0};
};

// Calls fn(row) for the rows of one step.
template <class Fn> void each_row(KernelContext& c, int64_t rows, int64_t width, Fn&& fn) {
  c.parallel_for(rows, 8192 / std::max<int64_t>(1, width) + 1, [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) fn(k);
  });
}

template <class T> void add_to(const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// sums[j] += the sum of column j. Workers divide the columns.
template <class T> void add_columns(const KernelContext& c, const T* x, int64_t rows, int64_t width, T* sums) {
  constexpr int64_t kStrip = 64, kWorth = 1 << 16;
  c.parallel_for((width + kStrip - 1) / kStrip, kWorth / std::max<int64_t>(1, rows * kStrip) + 1,
                 [&](int64_t b, int64_t e) {
                   const int64_t from = b * kStrip, n = std::min(width, e * kStrip) - from;
                   for (int64_t r = 0; r < rows; ++r) add_to(x + r * width + from, n, sums + from);
                 });
}

// The optional input Bias, with one number per column of Input.
void check_bias(const InferContext& c);
// The initial state: one row per sequence.
void check_first(const InferContext& c, const char* slot, const char* input, int64_t width);

}  // namespace anabranch::sequence
