// Norms of any order: the term of an element, the norm of the sum, and their derivatives.
#pragma once
#include <cmath>
#include <limits>

#include "ops/device/element.h"

namespace anabranch::math {

AB_HD inline double sign_or_nan(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

// Terms are joined, the total becomes the norm. Includes the orders 0, negative and infinite.
struct NormOf {
  double p;
  AB_HD bool highest() const { return p == std::numeric_limits<double>::infinity(); }
  AB_HD bool lowest() const { return p == -std::numeric_limits<double>::infinity(); }
  AB_HD bool joins_by_sum() const { return !highest() && !lowest(); }
  AB_HD double start() const { return lowest() ? std::numeric_limits<double>::infinity() : 0; }
  AB_HD double term(double size) const {
    if (p == 0) return size != 0;
    if (p == 1 || highest() || lowest()) return size;
    return p == 2 ? size * size : std::pow(size, p);
  }
  AB_HD double join(double a, double b) const {
    if (a != a || b != b) return a + b;
    if (highest()) return a > b ? a : b;
    return lowest() ? (a < b ? a : b) : a + b;
  }
  AB_HD double result(double total) const {
    if (p == 0 || p == 1 || highest() || lowest()) return total;
    return p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
  }
  // Derivative of the norm `out` with respect to an element d.
  AB_HD double slope(double d, double out) const {
    if (p == 0) return 0;
    if (p == 1) return sign_or_nan(d);
    if (highest() || lowest()) return std::abs(d) == out ? sign_or_nan(d) : 0;
    if (p == 2) return d / out;
    return sign_or_nan(d) * std::pow(std::abs(d), p - 1) / std::pow(out, p - 1);
  }
};

}  // namespace anabranch::math
