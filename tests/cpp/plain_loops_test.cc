// Loops that compilers have vectors for, sums in parts and rounding, against what each element is by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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
