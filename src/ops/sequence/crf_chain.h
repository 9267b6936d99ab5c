// Sums over all taggings of a sequence, normalized in each row, so that long sequences do not overflow.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/sequence/crf.h"
#include "ops/sequence/crf_loops.h"

namespace anabranch::sequence {

inline constexpr int64_t kChainGrain = 16384;  // multiplications that are worth a task

// out = row w, w [n, n].
template <class T> void times(const T* row, const T* w, int64_t n, T* out) {
  std::fill(out, out + n, T{0});
  for (int64_t j = 0; j < n; ++j) {
    const T factor = row[j], *weights = w + j * n;
    for (int64_t i = 0; i < n; ++i) out[i] += factor * weights[i];
  }
}

template <class T> double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

inline void check_sum(double sum) {
  AB_CHECK(sum > 0, InvalidArgument,
           "no path has a probability above 0 (the sum is {}): Transition or Emission are too small, or hold NaN", sum);
}

// Normalizes a row to the sum 1; returns the old sum.
template <class T> double normalize(T* row, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += row[i];
  check_sum(sum);
  for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] / sum);
  return sum;
}

// The sum of the logarithms of positive float32 numbers: of products within the range of double.
inline double sum_of_logs(const float* x, int64_t n) {
  constexpr int64_t kFactors = 6;
  double sum = 0;
  for (int64_t i = 0; i < n; i += kFactors) {
    double product = 1;
    for (int64_t j = i; j < std::min(n, i + kFactors); ++j) product *= x[j];
    sum += std::log(product);
  }
  return sum;
}

// Weights from each tag to the next for the vector loops, or (turned) to each tag from the next.
inline const float* vector_weights(const float* w, int64_t tags, bool turned, Tensor* memory) {
  const int64_t width = loops::crf_width(tags);
  memory->resize(Shape{tags, width}, DType::kFloat32);
  auto* out = memory->mutable_data<float>();
  for (int64_t i = 0; i < tags; ++i) {
    for (int64_t j = 0; j < width; ++j)
      out[i * width + j] = j >= tags ? 0.0f : turned ? w[j * tags + i] : w[i * tags + j];
  }
  return out;
}

inline float* crf_memory(Tensor* memory, int64_t rows, int64_t width) {
  memory->resize(Shape{rows, width}, DType::kFloat32);
  return memory->mutable_data<float>();
}

// Rows of all batch entries, as kernels see them.
template <class T> struct Chain {
  int64_t tags;
  const T *x, *x_exps;  // [rows, tags]
  const T *w, *w_exps;  // [2 + tags, tags]: for the first tag, for the last, from one to the next
  const int64_t* labels;

  double score(int64_t begin, int64_t n) const {
    const int64_t* y = labels + begin;
    double sum = static_cast<double>(w[y[0]]) + w[tags + y[n - 1]];
    for (int64_t t = 0; t < n; ++t) sum += x[(begin + t) * tags + y[t]];
    for (int64_t t = 1; t < n; ++t) sum += w[(2 + y[t - 1]) * tags + y[t]];
    return sum;
  }

  // Normalized sums over all paths that end at a tag, for the rows of one sequence; returns the logarithm of the sum
  // over all paths. largest: of each row of x.
  double forward(int64_t begin, int64_t n, const T* largest, T* alpha) const {
    double log_sum = 0;
    for (int64_t t = 0; t < n; ++t) {
      const T* e = x_exps + (begin + t) * tags;
      T* a = alpha + (begin + t) * tags;
      if (t == 0) {
        std::copy(w_exps, w_exps + tags, a);
      } else {
        times(a - tags, w_exps + 2 * tags, tags, a);
      }
      for (int64_t i = 0; i < tags; ++i) a[i] *= e[i];
      log_sum += std::log(normalize(a, tags)) + largest[begin + t];
    }
    return log_sum + log_of_ends(dot(alpha + (begin + n - 1) * tags, w_exps + tags, tags));
  }

  // The same for float32, vectorized. weights and scratch: see crf_loops.h; sums [rows].
  double vector_forward(int64_t begin, int64_t n, const float* largest, const float* weights, float* scratch,
                        float* sums, float* alpha) const {
    const float ends = loops::crf_forward({tags, n, x_exps + begin * tags, weights, scratch}, w_exps, w_exps + tags,
                                          alpha + begin * tags, sums + begin);
    double log_sum = 0;
    for (int64_t t = begin; t < begin + n; ++t) {
      check_sum(sums[t]);
      log_sum += largest[t];
    }
    return log_sum + sum_of_logs(sums + begin, n) + log_of_ends(ends);
  }

 private:
  static double log_of_ends(double ends) {
    AB_CHECK(ends > 0, InvalidArgument, "no path has a probability above 0: row 1 of Transition is too small");
    return std::log(ends);
  }
};

}  // namespace anabranch::sequence
