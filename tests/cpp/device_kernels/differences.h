// Gradients by differences of values.
#pragma once
#include "host_kernels.h"

namespace anabranch::device {

using Values = std::vector<double>;

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// What `loss` gains by each element of x.
inline Values slopes(Values x, const std::function<double(const Values&)>& loss) {
  Values slope(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double own = x[i], h = 1e-5;
    x[i] = own + h;
    const double up = loss(x);
    x[i] = own - h;
    slope[i] = (up - loss(x)) / (2 * h);
    x[i] = own;
  }
  return slope;
}

template <class T> double slope_factor() { return std::is_same_v<T, double> ? 1e4 : 40; }

}  // namespace anabranch::device
