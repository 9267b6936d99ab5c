// Products too small for a library: the orders of their sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "ops/kernels/gemm.h"
#include "ops/kernels/small_product.h"

namespace anabranch {
namespace {

std::vector<float> random_floats(size_t n) {
  std::mt19937 gen(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> x(n);
  for (float& v : x) v = draw(gen);
  return x;
}

// A term is rounded before it is added.
float sum_in_order(const std::vector<float>& terms) {
  volatile float sum = 0;
  for (const float term : terms) sum = sum + term;
  return sum;
}
float sum_in_sixteen_parts(const std::vector<float>& terms) {
  std::array<float, 16> parts{};
  for (size_t i = 0; i < terms.size(); ++i) parts[i % 16] += terms[i];
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  }
  return parts[0];
}

// Small products of any form: each sum is in one of two orders.
TEST(Gemm, SmallProductsAreSumsInOrder) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{12, 1, 192}, {1, 12, 192}, {7, 1, 5}, {6, 9, 1}, {1, 1, 50}}) {
    const auto a = random_floats(static_cast<size_t>(m * k)), b = random_floats(static_cast<size_t>(k * n));
    for (int t = 0; t < 4; ++t) {
      const GemmDims d = {.m = m, .n = n, .k = k, .trans_a = (t & 1) != 0, .trans_b = (t & 2) != 0};
      std::vector<float> out(static_cast<size_t>(m * n));
      Gemm<float>(0.5).run(KernelContext(), d, a.data(), b.data(), out.data());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          std::vector<float> terms;
          for (int64_t l = 0; l < k; ++l) {
            terms.push_back(a[d.trans_a ? l * m + i : i * k + l] * b[d.trans_b ? j * k + l : l * n + j]);
          }
          const float found = out[static_cast<size_t>(i * n + j)];
          const float in_parts = k < 16 ? 0.5f * sum_in_order(terms) : 0.5f * sum_in_sixteen_parts(terms);
          ASSERT_TRUE(found == 0.5f * sum_in_order(terms) || found == in_parts)
              << m << " " << n << " " << k << " " << t;
        }
      }
    }
  }
}

using Floats = std::vector<float>;

Floats products_of_strided_rows(const Floats& a, const Floats& b, int64_t ld, int64_t k, int64_t n) {
  Floats out(static_cast<size_t>(2 * n));
  simd::dots(1.0f, a.data(), b.data(), ld, k, n, out.data());
  simd::weighted_rows(1.0f, a.data(), 1, b.data(), ld, k, n, out.data() + n);
  return out;
}

// Each row in a separate block, which ends with the last element of the row.
Floats products_of_listed_rows(const Floats& a, const Floats& b, int64_t ld, int64_t k, int64_t n) {
  const auto row = [&](int64_t i, int64_t width) { return Floats(b.begin() + i * ld, b.begin() + i * ld + width); };
  std::vector<Floats> for_dots, for_sum;
  for (int64_t j = 0; j < n; ++j) for_dots.push_back(row(j, k));
  for (int64_t l = 0; l < k; ++l) for_sum.push_back(row(l, n));
  std::vector<const float*> dots, sum;
  for (const Floats& r : for_dots) dots.push_back(r.data());
  for (const Floats& r : for_sum) sum.push_back(r.data());
  Floats out(static_cast<size_t>(2 * n));
  simd::dots_of_rows(a.data(), dots.data(), k, n, out.data());
  simd::sum_of_rows(a.data(), sum.data(), k, n, out.data() + n);
  return out;
}

// Rows end where the next byte must not matter.
TEST(SmallProduct, SumsHaveOneOrderOnEveryMachine) {
  for (const int64_t k : {1, 15, 16, 17, 50, 100, 300, 2047}) {
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 16, 33}) {
      const int64_t ld = std::max(k, n) + 3;
      const auto a = random_floats(static_cast<size_t>(k));
      auto b = random_floats(static_cast<size_t>(std::max(k, n) * ld));
      std::vector<float> out(static_cast<size_t>(n) + 1, 99.0f);
      simd::dots(0.5f, a.data(), b.data(), ld, k, n, out.data());
      for (int64_t j = 0; j < n; ++j) {
        std::vector<float> terms;
        for (int64_t l = 0; l < k; ++l) terms.push_back(a[static_cast<size_t>(l)] * b[static_cast<size_t>(j * ld + l)]);
        ASSERT_EQ(out[static_cast<size_t>(j)], 0.5f * sum_in_sixteen_parts(terms)) << k << " " << n << " " << j;
      }
      simd::weighted_rows(2.0f, a.data(), 1, b.data(), ld, k, n, out.data());
      for (int64_t j = 0; j < n; ++j) {
        std::vector<float> terms;
        for (int64_t l = 0; l < k; ++l) terms.push_back(a[static_cast<size_t>(l)] * b[static_cast<size_t>(l * ld + j)]);
        ASSERT_EQ(out[static_cast<size_t>(j)], 2.0f * sum_in_order(terms)) << k << " " << n << " " << j;
      }
      ASSERT_EQ(products_of_listed_rows(a, b, ld, k, n), products_of_strided_rows(a, b, ld, k, n)) << k << " " << n;
      ASSERT_EQ(out.back(), 99.0f);
    }
  }
}

}  // namespace
}  // namespace anabranch
