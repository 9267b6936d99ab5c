// Gradients of activations as vector loops: accuracy, values where functions end, and independence of the position.
#include "ops/kernels/simd_gradients.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace anabranch {
namespace {

using Params = std::array<float, 2>;
using GradLoop = void (*)(const float*, const float*, float*, int64_t);
using ParamGradLoop = void (*)(const float*, const float*, const float*, float*, int64_t);

constexpr float kGeluScale = 0.79788456f, kGeluCubic = 0.044715f;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double slope_of_tanh(double x) { return 1 / (std::cosh(x) * std::cosh(x)); }

struct Row {
  const char* name;
  GradLoop loop;
  ParamGradLoop param_loop;
  Params p;
  double (*exact)(double v, const Params& p);
  float lo, hi;
  double tolerance = 1e-6;  // of the largest of the result and 1, for sums; of the result alone where it is a product
  bool relative = false;

  void run(const float* x, const float* dy, float* dx, int64_t n) const {
    param_loop ? param_loop(x, dy, p.data(), dx, n) : loop(x, dy, dx, n);
  }
};

double swish(double x, const Params& p) {
  const double in = p[0] * x, s = sigmoid(in);
  return s + in * s * (1 - s);
}
double mish(double x, const Params&) {
  const double s = std::log1p(std::exp(x));
  return std::tanh(s) + x * slope_of_tanh(s) * sigmoid(x);
}
double tanh_gelu(double x, const Params& p) {
  const double in = p[0] * (x + p[1] * x * x * x);
  return 0.5 * (1 + std::tanh(in) + x * slope_of_tanh(in) * p[0] * (1 + 3 * p[1] * x * x));
}

const std::vector<Row>& rows() {
  const auto sin_slope = [](double x, const Params&) { return std::cos(x); };
  const auto cos_slope = [](double x, const Params&) { return -std::sin(x); };
  const auto logsigmoid = [](double x, const Params&) { return sigmoid(-x); };
  const auto tanh_shrink = [](double x, const Params&) { return std::tanh(x) * std::tanh(x); };
  const auto stanh = [](double x, const Params& p) { return double(p[0]) * p[1] * slope_of_tanh(double(p[0]) * x); };
  const auto elu = [](double x, const Params& p) { return x > 0 ? 1 : p[0] * std::exp(x); };
  const auto soft_relu = [](double y, const Params& p) { return std::abs(y) < p[0] ? -std::expm1(-y) : 0; };
  static const std::vector<Row> all = {
      {"sin", simd::sin_grad, nullptr, {}, sin_slope, -20, 20},
      {"cos", simd::cos_grad, nullptr, {}, cos_slope, -20, 20},
      {"logsigmoid", simd::logsigmoid_grad, nullptr, {}, logsigmoid, -80, 80, 5e-7, true},
      {"tanh_shrink", simd::tanh_shrink_grad, nullptr, {}, tanh_shrink, -12, 12, 1e-6, true},
      {"tanh_shrink near 0", simd::tanh_shrink_grad, nullptr, {}, tanh_shrink, -1e-3f, 1e-3f, 1e-6, true},
      {"stanh", nullptr, simd::stanh_grad, {0.5f, 1.7f}, stanh, -60, 60, 5e-7, true},
      {"elu", nullptr, simd::elu_grad, {0.7f, 0}, elu, -80, 5, 5e-7, true},
      {"swish", nullptr, simd::swish_grad, {1.5f, 0}, swish, -50, 50},
      {"mish", nullptr, simd::mish_grad, {20.0f, 0}, mish, -60, 60},
      {"mish with a low threshold", nullptr, simd::mish_grad, {19.0f, 0}, mish, -60, 60},
      {"soft_relu", nullptr, simd::soft_relu_grad, {40.0f, 0}, soft_relu, 0, 50, 5e-7, true},
      {"gelu with tanh", nullptr, simd::tanh_gelu_grad, {kGeluScale, kGeluCubic}, tanh_gelu, -15, 15},
  };
  return all;
}

std::vector<float> between(float lo, float hi, size_t n) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> numbers(lo, hi);
  std::vector<float> made(n);
  for (float& v : made) v = numbers(random);
  return made;
}

TEST(SimdGradients, AreAccurate) {
  for (const Row& row : rows()) {
    const auto x = between(row.lo, row.hi, 50021), dy = between(-2, 2, 50021);
    std::vector<float> dx(x.size());
    row.run(x.data(), dy.data(), dx.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double slope = row.exact(x[i], row.p), expected = slope * dy[i];
      if (row.relative && std::abs(expected) < 1e-37) continue;
      const double size = row.relative ? std::abs(expected) : std::max(1.0, std::abs(slope)) * std::abs(dy[i]);
      worst = std::max(worst, std::abs(dx[i] - expected) / size);
    }
    EXPECT_LT(worst, row.tolerance) << row.name;
  }
}

TEST(SimdGradients, KeepNaNs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 2> x = {nan, 0.5f}, dy = {1, nan};
  for (const Row& row : rows()) {
    std::array<float, 2> dx{};
    row.run(x.data(), dy.data(), dx.data(), 2);
    EXPECT_TRUE(std::isnan(dx[0])) << row.name;
    EXPECT_TRUE(std::isnan(dx[1])) << row.name;
  }
}

TEST(SimdGradients, OfLeakyReluAreThoseOfC) {
  const auto y = between(-1, 1, 131), dy = between(-2, 2, 131);
  const Params p = {0.1f, 0};
  std::vector<float> dx(y.size());
  simd::leaky_relu_grad(y.data(), dy.data(), p.data(), dx.data(), 131);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(dx[i], dy[i] * (y[i] > 0 ? 1.0f : p[0]));
}

TEST(SimdGradients, AreFiniteForEveryFiniteNumber) {
  const std::array<float, 8> x = {1e3f, -1e3f, 1e10f, -1e10f, 1e20f, -1e20f, 3e38f, -3e38f};
  const std::array<float, 8> dy = {1, 1, 1, 1, 1, 1, 1, 1};
  for (const Row& row : rows()) {
    std::array<float, 8> dx{};
    row.run(x.data(), dy.data(), dx.data(), 8);
    for (size_t i = 0; i < x.size(); ++i) {
      if (row.param_loop == simd::soft_relu_grad && x[i] < 0) continue;  // its result never lies below 0
      EXPECT_TRUE(std::isfinite(dx[i])) << row.name << " " << x[i];
    }
  }
}

TEST(SimdGradients, AnElementDoesNotDependOnItsPosition) {
  const auto x = between(-3, 3, 131), dy = between(-2, 2, 131);
  for (const Row& row : rows()) {
    std::vector<float> whole(x.size()), cut(x.size());
    row.run(x.data(), dy.data(), whole.data(), 131);
    for (int64_t i = 0; i < 131; ++i)
      row.run(&x[static_cast<size_t>(i)], &dy[static_cast<size_t>(i)], &cut[static_cast<size_t>(i)], 1);
    EXPECT_EQ(std::memcmp(whole.data(), cut.data(), sizeof(float) * whole.size()), 0) << row.name;
  }
}

}  // namespace
}  // namespace anabranch
