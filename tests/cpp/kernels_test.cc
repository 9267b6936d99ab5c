// The shared inner loops of the ops against plain reference loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "ops/kernels/bfloat16.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_cut.h"
#include "ops/kernels/philox.h"
#include "ops/kernels/row_product.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"
#include "ops/kernels/workspace.h"

namespace anabranch {
namespace {

std::vector<float> random_floats(size_t n, float lo, float hi) {
  std::mt19937 gen(7);
  std::uniform_real_distribution<float> draw(lo, hi);
  std::vector<float> x(n);
  for (float& v : x) v = draw(gen);
  return x;
}

TEST(Workspace, OneAfterTheOtherTakesTheSameMemory) {
  const auto fill = [] {
    Workspace room;
    float* small = room.get<float>(100);
    std::fill_n(small, 100, 1.0f);
    float* large = room.get<float>(3 << 20);
    std::fill_n(large, 3 << 20, 2.0f);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(small[i], 1.0f);
    return small;
  };
  fill();  // in two blocks
  const float* first = fill();
  const int64_t held = resident_buffer_bytes();
  EXPECT_EQ(fill(), first);
  EXPECT_EQ(resident_buffer_bytes(), held);
}

TEST(Workspace, ThoseThatLiveAtOnceLieApart) {
  std::vector<std::unique_ptr<Workspace>> rooms;
  std::vector<int*> numbers;
  for (int i = 0; i < 70; ++i) {
    rooms.push_back(std::make_unique<Workspace>());
    numbers.push_back(rooms.back()->get<int>(64));
    std::fill_n(numbers.back(), 64, i);
  }
  for (int i = 0; i < 70; ++i) {
    for (int k = 0; k < 64; ++k) ASSERT_EQ(numbers[static_cast<size_t>(i)][k], i);
  }
}

using Loop = void (*)(const float*, float*, int64_t);

void expect_close(Loop loop, double (*exact)(double), float lo, float hi) {
  const auto x = random_floats(100003, lo, hi);
  std::vector<float> y(x.size());
  loop(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(x[i]);
    if (std::abs(expected) < 1e-37) continue;  // relative error means nothing among denormals
    worst = std::max(worst, std::abs(y[i] - expected) / std::abs(expected));
  }
  EXPECT_LT(worst, 5e-7);
}

TEST(Simd, TranscendentalsAreAccurate) {
  expect_close(simd::exp, std::exp, -87, 88);
  expect_close(simd::exp, std::exp, -1e-3f, 1e-3f);
  expect_close(simd::log, std::log, 1e-6f, 1e6f);
  expect_close(simd::log, std::log, 0.5f, 2.0f);
  expect_close(simd::tanh, std::tanh, -12, 12);
  expect_close(simd::tanh, std::tanh, -0.4f, 0.4f);
  expect_close(
      simd::rsqrt, [](double v) { return 1 / std::sqrt(v); }, 1e-6f, 1e6f);
  expect_close(
      simd::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, -80, 80);
}

TEST(Simd, SpecialValuesAreThoseOfC) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0.0f, -0.0f, inf, -inf, nan, 200.0f, -200.0f};
  std::vector<float> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  const auto check = [&](Loop loop, const std::vector<float>& expected) {
    loop(x.data(), y.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << x[i];
      } else {
        EXPECT_EQ(y[i], expected[i]) << x[i];
      }
    }
  };
  check(simd::exp, {1, 1, inf, 0, nan, inf, 0});
  check(simd::tanh, {0, -0.0f, 1, -1, nan, 1, -1});
  check(simd::sigmoid, {0.5f, 0.5f, 1, 0, nan, 1, 0});
  check(simd::log, {-inf, -inf, inf, nan, nan, std::log(200.0f), nan});
  simd::rsqrt(x.data(), y.data(), n);
  EXPECT_FLOAT_EQ(y[5], 1 / std::sqrt(200.0f));
  check(simd::rsqrt, {inf, -inf, 0, nan, nan, y[5], nan});
}

TEST(Simd, PowersAreThoseOfC) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> special = {0.0f,  -0.0f,  1,     -1, 2,    -2,  3,    0.5f,
                                      -0.5f, 1e-40f, 1e30f, 88, -150, inf, -inf, nan};
  std::vector<float> x, y;
  for (float a : special) {
    for (float b : special) x.push_back(a), y.push_back(b);
  }
  const auto more = random_floats(1001, 1e-3f, 30), exponents = random_floats(1001, -9, 9);
  x.insert(x.end(), more.begin(), more.end());
  y.insert(y.end(), exponents.begin(), exponents.end());
  std::vector<float> out(x.size()), cut(x.size());
  simd::pow(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const float expected = std::pow(x[i], y[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(out[i])) << x[i] << " " << y[i];
    } else {
      EXPECT_FLOAT_EQ(out[i], expected) << x[i] << " " << y[i];
    }
    simd::pow(&x[i], &y[i], &cut[i], 1);  // its neighbors do not count
    EXPECT_EQ(std::bit_cast<uint32_t>(cut[i]), std::bit_cast<uint32_t>(out[i])) << x[i] << " " << y[i];
  }
}

double mish(double v) { return v * std::tanh(std::log1p(std::exp(v))); }

TEST(Simd, MishIsAccurateWhereverItsThresholdLies) {
  expect_close([](const float* x, float* out, int64_t n) { simd::mish(x, std::array{20.0f}.data(), out, n); }, mish,
               -60, 60);
  expect_close([](const float* x, float* out, int64_t n) { simd::mish(x, std::array{19.0f}.data(), out, n); }, mish,
               -60, 60);
}

TEST(Simd, AnElementDoesNotDependOnItsPosition) {
  const auto x = random_floats(257, -3, 3);
  std::vector<float> whole(x.size()), cut(x.size());
  simd::tanh(x.data(), whole.data(), 257);
  for (int64_t at = 0; at < 257;) {
    const int64_t n = std::min<int64_t>(257 - at, at % 13 + 1);
    simd::tanh(x.data() + at, cut.data() + at, n);
    at += n;
  }
  EXPECT_EQ(whole, cut);
}

TEST(Simd, SumsOfLargeArraysKeepTheirPrecision) {
  const auto x = random_floats(3'000'001, 0, 1);
  double sum = 0, squares = 0;
  for (float v : x) sum += v, squares += static_cast<double>(v) * v;
  const auto n = static_cast<int64_t>(x.size());
  EXPECT_NEAR(simd::sum(x.data(), n) / sum, 1, 2e-7);
  EXPECT_NEAR(simd::sum_squares(x.data(), n) / squares, 1, 2e-7);
  EXPECT_EQ(simd::max_of(x.data(), n), *std::max_element(x.begin(), x.end()));
}

// Runs the chunks in reverse order: their order must not matter.
struct Backwards : Parallel {
  void run(int64_t n, int64_t chunk, Body body, void* fn) override {
    for (int64_t b = (n - 1) / chunk * chunk; b >= 0; b -= chunk) body(fn, b, std::min(b + chunk, n));
  }
};

template <class T> void check_gemm(const GemmDims& d, double alpha, double tolerance) {
  std::vector<T> a(static_cast<size_t>(d.batch * d.m * d.k)), b(static_cast<size_t>(d.batch * d.k * d.n));
  std::mt19937 gen(3);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (T& v : a) v = static_cast<T>(draw(gen));
  for (T& v : b) v = static_cast<T>(draw(gen));
  const auto size = static_cast<size_t>(d.batch * d.m * d.n);
  std::vector<T> out(size, T{99}), again(size, T{99});
  GemmDims dims = d;
  dims.batch_stride_a = d.m * d.k, dims.batch_stride_b = d.k * d.n, dims.batch_stride_c = d.m * d.n;
  Gemm<T> gemm(alpha), other(alpha);
  KernelContext c;
  gemm.run(c, dims, a.data(), b.data(), out.data());
  Backwards backwards;
  c.parallel = &backwards;
  other.run(c, dims, a.data(), b.data(), again.data());
  EXPECT_EQ(out, again);
  for (int64_t s = 0; s < d.batch; ++s) {
    for (int64_t i = 0; i < d.m; i += std::max<int64_t>(1, d.m / 7)) {
      for (int64_t j = 0; j < d.n; j += std::max<int64_t>(1, d.n / 5)) {
        double expected = 0;
        for (int64_t k = 0; k < d.k; ++k) {
          expected += static_cast<double>(a[s * d.m * d.k + (d.trans_a ? k * d.m + i : i * d.k + k)]) *
                      static_cast<double>(b[s * d.k * d.n + (d.trans_b ? j * d.k + k : k * d.n + j)]);
        }
        ASSERT_NEAR(out[(s * d.m + i) * d.n + j], alpha * expected, tolerance) << s << " " << i << " " << j;
      }
    }
  }
}

TEST(Gemm, EqualsTheDefinition) {
  const int64_t sizes[][4] = {{1, 1, 1, 1},       {3, 5, 7, 2},     {64, 100, 784, 1}, {784, 100, 64, 1},
                              {500, 300, 200, 1}, {33, 17, 65, 9},  {2, 3000, 900, 1}, {16, 1, 13, 1},
                              {4, 4, 0, 2},       {12, 1, 192, 3},  {23, 1, 7, 2},     {5, 11, 1, 3},
                              {1, 400, 273, 1},   {1, 17, 4000, 1}, {1, 1000, 301, 3}, {1, 15, 900, 1}};
  for (const auto& s : sizes) {
    for (int t = 0; t < 4; ++t) {
      const GemmDims d = {
          .m = s[0], .n = s[1], .k = s[2], .trans_a = (t & 1) != 0, .trans_b = (t & 2) != 0, .batch = s[3]};
      check_gemm<float>(d, t == 3 ? 0.5 : 1.0, 2e-4);
      check_gemm<double>(d, t == 3 ? 0.5 : 1.0, 1e-12);
    }
  }
}

// Workers would share all of an operand; with rows of C apart and an epilogue on the whole sum.
TEST(Gemm, LongSumsAreCutIntoShares) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{40, 24, 5001}, {33, 96, 9000}}) {
    const auto a = random_floats(static_cast<size_t>(m * k), -1, 1),
               b = random_floats(static_cast<size_t>(k * n), -1, 1);
    const auto row = random_floats(static_cast<size_t>(n), -1, 1);
    for (int t = 0; t < 4; ++t) {
      const GemmDims d = {.m = m, .n = n, .k = k, .trans_a = (t & 1) != 0, .trans_b = (t & 2) != 0, .ld_c = n + 3};
      ASSERT_TRUE(sums_in_chunks(d));
      ASSERT_GT(Cut(d, true).count, 1);
      std::vector<float> out(static_cast<size_t>(m * (n + 3)), 99.0f), again = out;
      KernelContext c;
      Gemm<float>().run(c, d, a.data(), b.data(), out.data(), {row.data(), simd::relu});
      Backwards backwards;
      c.parallel = &backwards;
      Gemm<float>().run(c, d, a.data(), b.data(), again.data(), {row.data(), simd::relu});
      EXPECT_EQ(out, again);
      for (int64_t i = 0; i < m; i += 5) {
        for (int64_t j = 0; j < n; j += 7) {
          double expected = row[static_cast<size_t>(j)];
          for (int64_t l = 0; l < k; ++l) {
            expected += static_cast<double>(a[static_cast<size_t>(d.trans_a ? l * m + i : i * k + l)]) *
                        b[static_cast<size_t>(d.trans_b ? j * k + l : l * n + j)];
          }
          ASSERT_NEAR(out[static_cast<size_t>(i * (n + 3) + j)], std::max(expected, 0.0), 3e-4)
              << i << " " << j << " " << t;
        }
        for (int64_t j = n; j < n + 3; ++j) ASSERT_EQ(out[static_cast<size_t>(i * (n + 3) + j)], 99.0f);
      }
    }
  }
}

// One row, as a model that answers a single question multiplies: long enough to share, in columns that do not depend
// on where they were cut, with room between the rows of B, which is not looked at.
TEST(Gemm, OneRowIsTheSameSumsWhereverItIsCut) {
  const int64_t n = 403, k = 261, ld = n + 5;
  const GemmDims d = {.m = 1, .n = n, .k = k, .ld_b = ld};
  ASSERT_TRUE(is_row_product(d));
  ASSERT_EQ(Cut(d, false).count, 2);
  const auto a = random_floats(static_cast<size_t>(k), -1, 1), row = random_floats(static_cast<size_t>(n), -1, 1);
  auto b = random_floats(static_cast<size_t>(k * ld), -1, 1);
  for (int64_t l = 0; l < k; ++l) std::fill_n(b.begin() + l * ld + n, 5, std::nanf(""));
  std::vector<float> whole(n + 1, 99.0f), cut = whole;
  Gemm<float>().run(KernelContext(), d, a.data(), b.data(), whole.data(), {row.data(), simd::relu});
  KernelContext c;
  Backwards backwards;
  c.parallel = &backwards;
  Gemm<float>().run(c, d, a.data(), b.data(), cut.data(), {row.data(), simd::relu});
  EXPECT_EQ(whole, cut);
  EXPECT_EQ(whole.back(), 99.0f);
  for (int64_t j = 0; j < n; ++j) {
    double expected = row[static_cast<size_t>(j)];
    for (int64_t l = 0; l < k; ++l) expected += double{a[static_cast<size_t>(l)]} * b[static_cast<size_t>(l * ld + j)];
    ASSERT_NEAR(whole[static_cast<size_t>(j)], std::max(expected, 0.0), 1e-4) << j;
    float one = 0;
    simd::row_product(a.data(), 1, b.data() + j, ld, k, 1, &one);
    ASSERT_EQ(std::max(one + row[static_cast<size_t>(j)], 0.0f), whole[static_cast<size_t>(j)]) << j;
  }
}

TEST(Philox, GivesTheNumbersOfThePaper) {
  const Philox::Block zeros = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(Philox::bijection({0, 0, 0, 0}, 0), zeros);
  const uint32_t f = 0xffffffff;
  const Philox::Block ones = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(Philox::bijection({f, f, f, f}, ~uint64_t{0}), ones);
}

TEST(Philox, DrawsHaveTheRightMoments) {
  const Philox rng({1, 2, 3, 0});
  double sum = 0, squares = 0, uniform = 0;
  constexpr int kDraws = 200000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double z = rng.normal(i);
    sum += z, squares += z * z, uniform += rng.uniform(i);
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(uniform / kDraws, 0.5, 0.003);
  rng.each_uniform(5, 23, [&](int64_t i, float u) { EXPECT_EQ(u, rng.uniform(static_cast<uint64_t>(i))); });
}

// Numbers that vectors make are those of the C library, rounded: 2^-44 of a radius is far less than a float32 tells
// apart, but often enough in this many draws the two lie around a boundary.
TEST(Philox, NumbersInRunsAreThoseOneByOne) {
  const Philox rng({5, 6, 7, 1});
  constexpr int64_t kBegin = 3, kEnd = 400003;
  std::vector<float> narrow(kEnd - kBegin);
  std::vector<double> wide(1000);
  const auto shifted = [](int64_t i, double z) { return static_cast<float>(static_cast<double>(i % 3) - 0.7 * z); };
  rng.each_normal(kBegin, kEnd, narrow.data(), shifted);
  for (int64_t i = kBegin; i < kEnd; ++i) {
    ASSERT_EQ(narrow[static_cast<size_t>(i - kBegin)], shifted(i, rng.normal(static_cast<uint64_t>(i)))) << i;
  }
  rng.each_normal(7, 1007, wide.data(), [](int64_t, double z) { return z; });
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(wide[i], rng.normal(7 + i)) << i;
  int64_t seen = 9;
  rng.each_uniform53(9, 1010, [&](int64_t i, double u) {
    ASSERT_EQ(i, seen++);
    ASSERT_EQ(u, rng.uniform53(static_cast<uint64_t>(i))) << i;
  });
  EXPECT_EQ(seen, 1010);
}

// Values that the test calls near are near: far closer than the margin, which the C library shares.
TEST(Philox, NearNormalsAreNear) {
  const PhiloxKey key{11, 12, 13};
  double z[2 * kUniformBlocks], margin[2 * kUniformBlocks], u[2 * kUniformBlocks];
  for (uint64_t first = 0; first < 20000; first += kUniformBlocks) {
    near_normal_blocks(key, first, z, margin);
    uniform53_blocks(key, first, u);
    for (int64_t i = 0; i < 2 * kUniformBlocks; ++i) {
      const double radius = std::sqrt(-2.0 * std::log1p(-u[i / 2 * 2])), angle = 2.0 * M_PI * u[i / 2 * 2 + 1];
      ASSERT_NEAR(z[i], radius * (i % 2 ? std::sin(angle) : std::cos(angle)), margin[i] / 16) << first << " " << i;
      ASSERT_LE(margin[i], radius * 0x1p-43);
    }
  }
}

TEST(Philox, KeysGiveDifferentDraws) {
  const Philox base({1, 2, 3, 0});
  for (const RandomKey& key : {RandomKey{2, 2, 3, 0}, RandomKey{1, 3, 3, 0}, RandomKey{1, 2, 4, 0},
                               RandomKey{1, 2, 3, 1}, RandomKey{2, 1, 3, 0}}) {
    EXPECT_NE(Philox(key).block(0), base.block(0));
  }
}

// In the chunks of a large array, too: to the nearer of two neighbors, which are 2^16 apart as whole numbers.
TEST(Bfloat16, RoundsToNearestAndTiesToEven) {
  std::vector<float> x = random_floats(3 * (1 << 16) + 5, -100, 100);
  x[1] = std::numeric_limits<float>::quiet_NaN();
  x[2] = std::numeric_limits<float>::infinity();
  for (size_t i = 3; i < x.size(); i += 7)
    x[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(x[i]) | 0xffff) ^ 0x7fff);
  std::vector<uint16_t> out;
  round_to_bfloat16(KernelContext(), x.data(), static_cast<int64_t>(x.size()), out);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(x[i]);
    const float got = std::bit_cast<float>(static_cast<uint32_t>(out[i]) << 16);
    if (i == 1) {
      EXPECT_TRUE(std::isnan(got));
    } else {
      const uint32_t below = bits >> 16, rest = bits & 0xffff;
      ASSERT_EQ(out[i], below + (rest > 0x8000 || (rest == 0x8000 && below % 2))) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace anabranch
