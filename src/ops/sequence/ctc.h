// The sums over alignments in connectionist temporal classification, for one sequence, as logarithms.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "ops/kernels/simd.h"
#include "ops/sequence/ctc_loops.h"

namespace anabranch::sequence {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b) + exp(c))
inline double log_add(double a, double b, double c) {
  const double most = std::fmax(a, std::fmax(b, c));
  if (most == kLogZero) return kLogZero;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// out = exp(x - max(x)); returns its sum.
inline float exp_row(const float* x, float* out, int64_t n) {
  simd::shift(x, simd::max_of(x, n), -std::numeric_limits<float>::infinity(), out, n);
  simd::exp(out, out, n);
  return simd::sum(out, n);
}
inline double exp_row(const double* x, double* out, int64_t n) {
  const double most = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += out[i] = std::exp(x[i] - most);
  return sum;
}

// out = softmax of a row; returns the logarithm of the sum of its exponentials.
template <class T> double softmax_row(const T* x, T* out, int64_t n) {
  const double sum = exp_row(x, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] / sum);
  return std::log(sum) + *std::max_element(x, x + n);
}

// The layout of the numbers of one sequence, in an array of `count` numbers. Each row of states has two additional
// cells without a path, so that every state has two neighbors.
struct CtcCells {
  int64_t rows, states;
  int64_t stride() const { return states + 2; }
  int64_t alpha(int64_t t) const { return t * stride() + 2; }              // preceded by the empty cells
  int64_t beta(int64_t which) const { return (rows + which) * stride(); }  // followed by the empty cells
  int64_t emitted() const { return (rows + 2) * stride(); }                // of one row
  int64_t shares() const { return emitted() + stride(); }
  int64_t skips() const { return shares() + stride(); }
  int64_t count() const { return skips() + stride(); }
};

// The states of an alignment are the labels with a blank before, between and after them: 2 * labels + 1.
template <class T> class CtcLattice {
 public:
  // Row t of `logits` starts at t * stride; `log_sums[t]` is the logarithm of the sum of its exponentials.
  CtcLattice(const T* logits, int64_t stride, const double* log_sums, int64_t rows, const int64_t* labels,
             int64_t count, int64_t blank)
      : logits_(logits),
        log_sums_(log_sums),
        labels_(labels),
        stride_(stride),
        rows_(rows),
        count_(count),
        blank_(blank) {}

  int64_t states() const { return 2 * count_ + 1; }
  CtcCells cells() const { return {rows_, states()}; }
  int64_t class_of(int64_t state) const { return state % 2 == 0 ? blank_ : labels_[state / 2]; }
  // Minimum number of rows for the labels: equal neighbors need a blank between them, and so does a label that is the
  // blank itself, as in Fluid 1.8.5.
  int64_t rows_needed() const {
    int64_t n = count_;
    for (int64_t k = 1; k < count_; ++k) n += !follows_directly(k);
    return n;
  }

  // Fills alpha[t][state], paths over rows 0 ... t that end in a state, in `numbers` of cells().count(). Returns the
  // logarithm of the sum over all paths.
  double forward(double* numbers) const {
    const CtcCells at = cells();
    const int64_t n = states();
    double *skip = numbers + at.skips(), *emitted = numbers + at.emitted();
    for (int64_t s = 0; s < n + 2; ++s) skip[s] = s < n && skips(s) ? 0 : kLogZero;
    for (int64_t t = 0; t < rows_; ++t) {
      double* now = numbers + at.alpha(t);
      std::fill(now - 2, now + n, kLogZero);
      emit(t, emitted);
      // A path advances at most two states per row and must still reach the end.
      const int64_t first = std::max<int64_t>(0, n - 2 * (rows_ - t)), last = std::min(n, 2 * t + 2);
      if (t == 0) {
        for (int64_t s = first; s < last; ++s) now[s] = emitted[s];
        continue;
      }
      const double* before = numbers + at.alpha(t - 1) + first;
      if (first < last) {
        loops::log_sum({before, before - 1, before - 2, skip + first, emitted + first, now + first}, last - first);
      }
    }
    const double* last = numbers + at.alpha(rows_ - 1);
    return log_add(last[n - 1], n > 1 ? last[n - 2] : kLogZero, kLogZero);
  }

  // Visits the rows in reverse after forward(): fn(row, state, share of all paths through it).
  template <class Fn> void backward(double* numbers, double log_sum, Fn&& fn) const {
    const CtcCells at = cells();
    const int64_t n = states();
    const double* skip = numbers + at.skips();
    double *emitted = numbers + at.emitted(), *shares = numbers + at.shares();
    double *now = numbers + at.beta(0), *after = numbers + at.beta(1);
    for (double* row : {now, after}) std::fill(row, row + n + 2, kLogZero);
    for (int64_t t = rows_ - 1; t >= 0; --t) {
      if (t == rows_ - 1) {
        for (int64_t s = std::max<int64_t>(0, n - 2); s < n; ++s) now[s] = 0;
      } else {
        loops::log_sum({after, after + 1, after + 2, skip + 2, zeros(emitted, n), now}, n);
      }
      loops::share(numbers + at.alpha(t), now, log_sum, shares, n);
      for (int64_t s = 0; s < n; ++s) {
        if (shares[s] > 0) fn(t, s, shares[s]);
      }
      emit(t, emitted);
      for (int64_t s = 0; s < n; ++s) now[s] += emitted[s];
      std::swap(now, after);
    }
  }

 private:
  static const double* zeros(double* row, int64_t n) {
    std::fill(row, row + n, 0.0);
    return row;
  }
  void emit(int64_t t, double* to) const {
    const T* row = logits_ + t * stride_;
    const double blank = row[blank_] - log_sums_[t];
    for (int64_t k = 0; k < count_; ++k) {
      to[2 * k] = blank;
      to[2 * k + 1] = row[labels_[k]] - log_sums_[t];
    }
    to[2 * count_] = blank;
  }
  // Whether a path may skip from the state before the previous one to this state.
  bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && follows_directly(s / 2); }
  bool follows_directly(int64_t k) const { return labels_[k] != labels_[k - 1] && labels_[k] != blank_; }

  const T* logits_;
  const double* log_sums_;
  const int64_t* labels_;
  int64_t stride_, rows_, count_, blank_;
};

}  // namespace anabranch::sequence
