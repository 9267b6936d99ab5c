// The sums over alignments that connectionist temporal classification is made of, for one sequence, in logarithms.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "ops/kernels/simd.h"

namespace anabranch::sequence {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b) + exp(c))
inline double log_add(double a, double b, double c) {
  const double most = std::fmax(a, std::fmax(b, c));
  if (most == kLogZero) return kLogZero;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

// out = exp(x less the largest x); returns the sum of it.
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

// The states of an alignment are the labels with a blank before, between and after them: 2 * labels + 1.
template <class T> class CtcLattice {
 public:
  // `logits` of row t begin at t * stride; `log_sums[t]` is the logarithm of the sum of their exponentials.
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
  int64_t class_of(int64_t state) const { return state % 2 == 0 ? blank_ : labels_[state / 2]; }
  // Rows that the labels need at least: equal neighbours need a blank between them.
  int64_t rows_needed() const {
    int64_t n = count_;
    for (int64_t k = 1; k < count_; ++k) n += labels_[k] == labels_[k - 1];
    return n;
  }

  // alpha[t][state]: paths over rows 0 ... t that end in a state. Returns the logarithm of the sum over all.
  double forward(double* alpha) const {
    const int64_t n = states();
    for (int64_t t = 0; t < rows_; ++t) {
      double *now = alpha + t * n, *before = now - n;
      for (int64_t s = 0; s < n; ++s) {
        if (!inside(t, s)) {
          now[s] = kLogZero;
        } else if (t == 0) {
          now[s] = log_probability(0, s);
        } else {
          now[s] = log_probability(t, s) +
                   log_add(before[s], s > 0 ? before[s - 1] : kLogZero, skips(s) ? before[s - 2] : kLogZero);
        }
      }
    }
    const double* last = alpha + (rows_ - 1) * n;
    return log_add(last[n - 1], n > 1 ? last[n - 2] : kLogZero, kLogZero);
  }

  // Goes back through the rows: fn(row, state, share of all paths that pass there). `beta` has room for two rows.
  template <class Fn> void backward(const double* alpha, double log_sum, double* beta, Fn&& fn) const {
    const int64_t n = states();
    double *now = beta, *after = beta + n;
    for (int64_t t = rows_ - 1; t >= 0; --t) {
      for (int64_t s = 0; s < n; ++s) {
        now[s] = t == rows_ - 1 ? (s >= n - 2 ? 0 : kLogZero)
                                : log_add(after[s], s + 1 < n ? after[s + 1] : kLogZero,
                                          s + 2 < n && skips(s + 2) ? after[s + 2] : kLogZero);
        const double share = std::exp(alpha[t * n + s] + now[s] - log_sum);
        if (share > 0) fn(t, s, share);
      }
      for (int64_t s = 0; s < n; ++s) now[s] += log_probability(t, s);
      std::swap(now, after);
    }
  }

 private:
  double log_probability(int64_t t, int64_t s) const { return logits_[t * stride_ + class_of(s)] - log_sums_[t]; }
  // May the state follow the one before the one before it?
  bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && labels_[s / 2] != labels_[s / 2 - 1]; }
  // Can a path be in state s at row t, and still reach the end? A row passes two states at most.
  bool inside(int64_t t, int64_t s) const { return s <= 2 * t + 1 && s >= states() - 2 * (rows_ - t); }

  const T* logits_;
  const double* log_sums_;
  const int64_t* labels_;
  int64_t stride_, rows_, count_, blank_;
};

}  // namespace anabranch::sequence
