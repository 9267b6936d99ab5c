// Products of small matrices in tiles: each element is one ascending sum, for any tiles.
#include "ops/kernels/tile_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/kernels/gemm.h"

namespace anabranch {
namespace {

using Floats = std::vector<float>;

Floats random_floats(int64_t n, unsigned seed) {
  std::mt19937 gen(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  Floats x(static_cast<size_t>(n));
  for (float& v : x) v = draw(gen);
  return x;
}

struct Form {
  int64_t m, n, k;
  bool trans_a, trans_b;
};

// The sum in ascending order, with each product rounded or not.
float ascending(const Floats& a, int64_t a_at, int64_t a_step, const Floats& b, int64_t b_at, int64_t b_step, int64_t k,
                bool fused) {
  volatile float sum = 0;
  for (int64_t l = 0; l < k; ++l) {
    const float x = a[static_cast<size_t>(a_at + l * a_step)], y = b[static_cast<size_t>(b_at + l * b_step)];
    volatile const float product = x * y;
    sum = fused ? std::fma(x, y, sum) : sum + product;
  }
  return sum;
}

// Rows are three elements longer than needed; the elements after them must stay.
void check(const Form& f, float alpha) {
  const int64_t ld_a = (f.trans_a ? f.m : f.k) + 3, ld_b = (f.trans_b ? f.k : f.n) + 3, ld_c = f.n + 3;
  const Floats a = random_floats(std::max(f.m, f.k) * ld_a, 1), b = random_floats(std::max(f.n, f.k) * ld_b, 2);
  Floats out(static_cast<size_t>(f.m * ld_c), 99.0f);
  const int64_t a_row = f.trans_a ? 1 : ld_a, a_col = f.trans_a ? ld_a : 1;
  simd::tile_product({f.m, f.n, f.k, alpha, a.data(), a_row, a_col, b.data(), ld_b, f.trans_b, out.data(), ld_c});
  const int64_t b_row = f.trans_b ? 1 : ld_b, b_col = f.trans_b ? ld_b : 1;
  bool all_fused = true, all_rounded = true;
  for (int64_t i = 0; i < f.m; ++i) {
    for (int64_t j = 0; j < ld_c; ++j) {
      const float found = out[static_cast<size_t>(i * ld_c + j)];
      if (j >= f.n) {
        ASSERT_EQ(found, 99.0f);
        continue;
      }
      all_fused &= found == alpha * ascending(a, i * a_row, a_col, b, j * b_col, b_row, f.k, true);
      all_rounded &= found == alpha * ascending(a, i * a_row, a_col, b, j * b_col, b_row, f.k, false);
    }
  }
  ASSERT_TRUE(all_fused || all_rounded) << f.m << " " << f.n << " " << f.k << " " << f.trans_a << f.trans_b;
}

TEST(TileProduct, EachElementIsOneAscendingSum) {
  for (const int64_t m : {1, 2, 5, 6, 8, 13, 26}) {
    for (const int64_t n : {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 50}) {
      for (const int64_t k : {1, 2, 3, 4, 7, 8, 26, 256}) {
        for (int t = 0; t < 4; ++t) check({m, n, k, (t & 1) != 0, (t & 2) != 0}, k % 2 ? 1.0f : 0.5f);
      }
    }
  }
}

// A batch has the same matrices as its products one by one.
TEST(Gemm, BatchesOfSmallMatrices) {
  constexpr int64_t kBatch = 9;
  for (const Form& f : {Form{26, 26, 8, false, true}, {26, 8, 26, false, false}, {12, 40, 33, true, false}}) {
    const Floats a = random_floats(kBatch * f.m * f.k, 3), b = random_floats(kBatch * f.k * f.n, 4);
    GemmDims d = {.m = f.m, .n = f.n, .k = f.k, .trans_a = f.trans_a, .trans_b = f.trans_b};
    Floats together(static_cast<size_t>(kBatch * f.m * f.n)), alone(together.size());
    for (int64_t i = 0; i < kBatch; ++i) {
      Gemm<float>(0.25).run(KernelContext(), d, a.data() + i * f.m * f.k, b.data() + i * f.k * f.n,
                            alone.data() + i * f.m * f.n);
    }
    d.batch = kBatch;
    d.batch_stride_a = f.m * f.k, d.batch_stride_b = f.k * f.n, d.batch_stride_c = f.m * f.n;
    Gemm<float>(0.25).run(KernelContext(), d, a.data(), b.data(), together.data());
    for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(together[i], alone[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace anabranch
