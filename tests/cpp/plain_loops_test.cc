// Loops that compilers have vectors for, sums in parts and rounding, against what each element is by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ops/kernels/binary_run.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/round_half.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide_map.h"

namespace anabranch {
namespace {

std::vector<float> some_floats(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = std::sin(static_cast<float>(i) * 1.7f) * 3.0f;
  return x;
}

TEST(PlainLoops, GiveTheBitsOfOneElementAfterTheOther) {
  const auto bend = [](float v) { return (v < -1 ? -1 : v) * 0.3f + 0.7f; };
  for (size_t n = 0; n < 70; ++n) {
    const auto x = some_floats(n);
    std::vector<float> out(n);
    wide_map(KernelContext(), kCheapGrain, static_cast<int64_t>(n), x.data(), out.data(), bend);
    for (size_t i = 0; i < n; ++i) {
      const volatile float product = (x[i] < -1 ? -1 : x[i]) * 0.3f;
      ASSERT_EQ(out[i], product + 0.7f) << i << " of " << n;
    }
  }
}

// Of runs on which an operand stands still, too; long ones are another loop.
TEST(PlainLoops, RunsOfTwoOperandsGiveTheBitsOfSingleElements) {
  const auto less = [](float a, float b) { return a * 0.5f < b; };
  for (size_t n : {0u, 1u, 7u, 63u, 64u, 65u, 200u}) {
    const auto x = some_floats(std::max<size_t>(n, 1)), y = some_floats(n + 3);
    for (const auto& [sx, sy] : {std::pair{1, 1}, {1, 0}, {0, 1}}) {
      std::vector<uint8_t> out(n + 1, 7);
      binary_run(x.data(), sx, y.data() + 3, sy, out.data(), static_cast<int64_t>(n), less);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(out[i] != 0, less(x[sx ? i : 0], y[3 + (sy ? i : 0)])) << i << " of " << n << ", " << sx << sy;
      }
      EXPECT_EQ(out[n], 7);
    }
  }
}

TEST(Folds, ExtremesOfManyAreThoseOfTheFewOnes) {
  for (size_t n = 1; n < 300; ++n) {
    const auto x = some_floats(n);
    const std::vector<double> wide(x.begin(), x.end());
    const auto count = static_cast<int64_t>(n);
    EXPECT_EQ(fold_run<FoldMax<float>>(x.data(), count), *std::max_element(x.begin(), x.end())) << n;
    EXPECT_EQ(fold_run<FoldMin<double>>(wide.data(), count), *std::min_element(wide.begin(), wide.end())) << n;
  }
}

TEST(Sums, AreNearTheExactOnes) {
  for (size_t n = 0; n < 100; ++n) {
    const auto x = some_floats(n);
    const float* p = x.data();
    const auto count = static_cast<int64_t>(n);
    const float sum = sum_of<float>(count, [=](int64_t i) { return p[i]; });
    EXPECT_EQ(simd::dot(p, p, count), simd::sum_squares(p, count)) << n;
    double exact = 0;
    for (const float v : x) exact += static_cast<double>(v);
    EXPECT_NEAR(sum, exact, 1e-5) << n;
    EXPECT_NEAR(simd::sum(p, count), exact, 1e-5) << n;
  }
}

TEST(Rounding, IsThatOfTheCLibrary) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,         -0.0f, 0.5f,       -0.5f,       1.5f,       -1.5f, 2.5f, -2.5f, 0.49999997f,
                          -0.49999997f, -0.3f, 8388607.5f, -8388607.5f, 8388609.0f, 1e30f, inf,  -inf};
  std::vector<float> out(x.size());
  simd::round(x.data(), out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    for (const float got : {out[i], round_half_away(x[i]), static_cast<float>(round_half_away<double>(x[i]))}) {
      EXPECT_EQ(got, std::round(x[i])) << x[i];
      EXPECT_EQ(std::signbit(got), std::signbit(std::round(x[i]))) << x[i];
    }
  }
  EXPECT_TRUE(std::isnan(round_half_away(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace anabranch
