// A product on device 0, with what it must be.
#pragma once
#include <algorithm>
#include <vector>

#include "harness.h"

namespace anabranch::cuda {

inline GemmDesc desc_of(int64_t m, int64_t n, int64_t k, bool ta = false, bool tb = false) {
  GemmDesc d{};
  d.m = m;
  d.n = n;
  d.k = k;
  d.batch = 1;
  d.row_a = ta ? m : k;
  d.row_b = tb ? k : n;
  d.row_out = n;
  d.alpha = 1;
  d.transposed_a = ta;
  d.transposed_b = tb;
  d.dtype = AB_FLOAT32;
  return d;
}

// run(begin): with a and the bias beginning at that element.
struct Product {
  Product(Sim& sim, const GemmDesc& d) : d(d), queue(sim.queue("compute")) {
    a = fill(sim, d.transposed_a ? d.k : d.m, d.row_a, d.stride_a, 1);
    b = fill(sim, d.transposed_b ? d.n : d.k, d.row_b, d.stride_b, 2);
    out = fill(sim, d.m, d.row_out, d.stride_out, 3);
    bias = fill(sim, d.n, 1, 0, 4);
    before.assign(out, out + room(d.m, d.row_out, d.stride_out));
  }
  size_t room(int64_t rows, int64_t row, int64_t stride) const {
    return static_cast<size_t>((d.batch - 1) * stride + rows * row + 4);
  }
  float* fill(Sim& sim, int64_t rows, int64_t row, int64_t stride, int seed) const {
    const size_t n = room(rows, row, stride);
    float* p = sim.floats(n);
    for (size_t i = 0; i < n; ++i) p[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 5) % 11) - 5;
    return p;
  }
  int plan() { return api.library_plan(0, "gemm", &d, sizeof d, &call, &workspace); }
  int run(size_t begin = 0) {
    const uint64_t bytes = uint64_t{1} << 20;
    const ab_operand operands[] = {{a + begin, bytes, AB_READ, 0},
                                   {b, bytes, AB_READ, 0},
                                   {out, bytes, AB_WRITE, 0},
                                   {bias + begin, bytes, AB_READ, 0}};
    char scratch[64];
    const int count = d.epilogue & device::kGemmBias ? 4 : 3;
    return api.library_run(queue, call, operands, count, workspace ? scratch : nullptr, workspace);
  }
  float expected(int64_t matrix, int64_t i, int64_t j) const {
    const float sum = product(matrix, i, j) + (d.epilogue & device::kGemmBias ? bias[j] : 0);
    return d.epilogue & device::kGemmRelu ? std::max(sum, 0.0F) : sum;
  }
  float product(int64_t matrix, int64_t i, int64_t j) const {
    const auto row = [](const float* p, int64_t row, int64_t r, int64_t c, bool t) {
      return t ? p[c * row + r] : p[r * row + c];
    };
    float sum = 0;
    for (int64_t l = 0; l < d.k; ++l) {
      sum += row(a + matrix * d.stride_a, d.row_a, i, l, d.transposed_a) *
             row(b + matrix * d.stride_b, d.row_b, l, j, d.transposed_b);
    }
    const size_t at = static_cast<size_t>(matrix * d.stride_out + i * d.row_out + j);
    return static_cast<float>(d.alpha) * sum + (d.beta == 0 ? 0 : static_cast<float>(d.beta) * before[at]);
  }
  // All elements, and what lies between rows as it was.
  void check() const {
    std::vector<float> all = before;
    for (int64_t matrix = 0; matrix < d.batch; ++matrix) {
      for (int64_t i = 0; i < d.m; ++i) {
        for (int64_t j = 0; j < d.n; ++j) {
          all[static_cast<size_t>(matrix * d.stride_out + i * d.row_out + j)] = expected(matrix, i, j);
        }
      }
    }
    EXPECT_THAT(std::vector<float>(out, out + all.size()), testing::ElementsAreArray(all));
  }

  const GemmDesc d;
  ab_queue* queue;
  float *a, *b, *out, *bias;
  std::vector<float> before;
  ab_library* call = nullptr;
  size_t workspace = 0;
};

}  // namespace anabranch::cuda
