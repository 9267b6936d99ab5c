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

}  // namespace anabranch
