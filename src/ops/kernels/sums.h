// Sums of terms in a fixed order: sixteen partial sums for every vector width, so that no term waits for the previous
// one and compilers can vectorize.
#pragma once
#include <cstdint>

namespace anabranch {

// The sum of term(i) for i in [0, n), in blocks added up in double, so that the error does not grow with n.
template <class T, class Term> T sum_of(int64_t n, Term&& term) {
  constexpr int64_t kPartials = 16, kBlock = 2048;
  double sum = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = n - from < kBlock ? n : from + kBlock;
    T part[kPartials] = {};
    int64_t i = from;
    for (; i + kPartials <= to; i += kPartials) {
      for (int64_t k = 0; k < kPartials; ++k) part[k] += term(i + k);
    }
    int64_t k = 0;  // the remainder, as far as whole vectors cover it
    for (int64_t width = kPartials / 2; width >= 4; width /= 2) {
      if (to - i - k < width) continue;
      for (int64_t j = 0; j < width; ++j) part[k + j] += term(i + k + j);
      k += width;
    }
    for (; i + k < to; ++k) part[k] += term(i + k);
    for (int64_t half = kPartials / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) part[k] += part[k + half];
    }
    sum += static_cast<double>(part[0]);
  }
  return static_cast<T>(sum);
}

// sums[c] += term(c, i) for i in [0, n) and c in [0, count), each sum in that order; four at a time, so that an
// addition does not wait for the previous one.
template <class T, class Term> void add_in_order(int64_t count, int64_t n, T* sums, Term&& term) {
  constexpr int64_t kTogether = 4;
  int64_t c = 0;
  for (; c + kTogether <= count; c += kTogether) {
    T part[kTogether] = {sums[c], sums[c + 1], sums[c + 2], sums[c + 3]};
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < kTogether; ++k) part[k] += term(c + k, i);
    }
    for (int64_t k = 0; k < kTogether; ++k) sums[c + k] = part[k];
  }
  for (; c < count; ++c) {
    T sum = sums[c];
    for (int64_t i = 0; i < n; ++i) sum += term(c, i);
    sums[c] = sum;
  }
}

}  // namespace anabranch
