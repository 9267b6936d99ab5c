// Normalization of channels by cuDNN and by kernels of ours, with a library that computes on the host what cuDNN would.
#include <cmath>
#include <vector>

#include "harness.h"
#include "loaded.h"
#include "ops/device/args_library.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;
using Floats = std::vector<float>;

const Loaded& library() {
  static const Loaded loaded("/libcudnn.so.9");
  return loaded;
}

class CudaNorm : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    library().function<void()>("fake_cudnn_reset")();
  }
  static std::string calls() { return library().function<const char*()>("fake_cudnn_calls")(); }
};

BatchNormDesc desc_of(int64_t outer, int64_t channels, int64_t inner, bool fixed = false) {
  BatchNormDesc d{};
  d.outer = outer;
  d.channels = channels;
  d.inner = inner;
  d.epsilon = 1e-3;
  d.momentum = 0.75;
  d.fixed = fixed;
  d.dtype = AB_FLOAT32;
  return d;
}

Floats some(int64_t n, size_t seed) {
  Floats p(static_cast<size_t>(n));
  for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<float>((i * 7 + seed * 5) % 11) / 4 - 1;
  return p;
}

ab_operand operand(Floats& v) { return {v.empty() ? nullptr : v.data(), v.size() * sizeof(float), AB_READ_WRITE, 0}; }

int run(Sim& sim, const char* key, const BatchNormDesc& d, std::vector<ab_operand> operands) {
  ab_library* call = nullptr;
  size_t workspace = 0;
  if (const int status = api.library_plan(0, key, &d, sizeof d, &call, &workspace)) return status;
  std::vector<char> scratch(workspace + 1, 0x7f);  // NaNs
  const int status = api.library_run(sim.queue("compute"), call, operands.data(), static_cast<int>(operands.size()),
                                     workspace ? scratch.data() : nullptr, workspace);
  EXPECT_EQ(scratch.back(), 0x7f);
  return status;
}

void expect_near(const Floats& found, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2e-5 * (1 + std::fabs(expected[i]))) << what << " " << i;
}

// A normalization and its gradient, with what they must be, in float64.
struct Norm {
  explicit Norm(const BatchNormDesc& d)
      : d(d),
        n(d.outer * d.inner),
        x(some(n * d.channels, 1)),
        dy(some(n * d.channels, 2)),
        scale(some(d.channels, 3)),
        bias(some(d.channels, 4)),
        mean(some(d.channels, 5)),
        variance(some(d.channels, 6)),
        y(x.size(), -7.0f),
        dx(x.size(), -7.0f),
        mean_out(scale.size()),
        variance_out(scale.size()),
        used(scale.size()),
        inverse(scale.size()),
        dscale(scale.size()),
        dbias(scale.size()) {
    for (float& v : variance) v = v * v + 0.5f;
  }
  bool pass() const { return !d.fixed && n == 1; }
  size_t at(int64_t k, int64_t i) const {
    return static_cast<size_t>((i / d.inner * d.channels + k) * d.inner + i % d.inner);
  }
  int forward(Sim& sim) {
    return run(sim, "batch_norm", d,
               {operand(x), operand(scale), operand(bias), operand(mean), operand(variance), operand(y),
                operand(mean_out), operand(variance_out), operand(used), operand(inverse)});
  }
  int backward(Sim& sim) {
    Floats none;
    Floats &m = d.fixed ? mean : none, &v = d.fixed ? variance : none;
    return run(sim, "batch_norm_grad", d,
               {operand(x), operand(scale), operand(dy), operand(used), operand(inverse), operand(m), operand(v),
                operand(dx), operand(dscale), operand(dbias)});
  }
  void check() const {
    std::vector<double> e_y(x.size()), e_dx(x.size()), e_mean, e_variance, e_used, e_inverse, e_dscale, e_dbias;
    for (int64_t k = 0; k < d.channels; ++k) {
      const auto c = static_cast<size_t>(k);
      double m = 0, v = 0;
      for (int64_t i = 0; i < n; ++i) m += x[at(k, i)] / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) v += (x[at(k, i)] - m) * (x[at(k, i)] - m) / static_cast<double>(n);
      const bool given = d.fixed || pass();
      if (given) m = mean[c], v = variance[c];
      e_mean.push_back(given ? m : mean[c] * d.momentum + m * (1 - d.momentum));
      e_variance.push_back(given ? v : variance[c] * d.momentum + v * (1 - d.momentum));
      const double inv = pass() ? 0 : 1 / std::sqrt(v + d.epsilon);
      e_used.push_back(pass() ? 0 : m);
      e_inverse.push_back(inv);
      double sum = 0, sum_x = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += dy[at(k, i)];
        sum_x += dy[at(k, i)] * (x[at(k, i)] - m) * inv;
      }
      e_dbias.push_back(pass() ? 0 : sum);
      e_dscale.push_back(pass() ? 0 : sum_x);
      const double share = d.fixed ? 0 : 1 / static_cast<double>(n);
      for (int64_t i = 0; i < n; ++i) {
        const double normal = (x[at(k, i)] - m) * inv;
        e_y[at(k, i)] = pass() ? x[at(k, i)] : normal * scale[c] + bias[c];
        e_dx[at(k, i)] = pass() ? dy[at(k, i)] : scale[c] * inv * (dy[at(k, i)] - sum * share - normal * sum_x * share);
      }
    }
    expect_near(y, e_y, "y");
    if (!mean_out.empty()) expect_near(mean_out, e_mean, "mean_out");
    if (!variance_out.empty()) expect_near(variance_out, e_variance, "variance_out");
    expect_near(used, e_used, "used");
    expect_near(inverse, e_inverse, "inverse");
    if (!dx.empty()) expect_near(dx, e_dx, "dx");
    if (!dscale.empty()) expect_near(dscale, e_dscale, "dscale");
    if (!dbias.empty()) expect_near(dbias, e_dbias, "dbias");
  }

  const BatchNormDesc d;
  const int64_t n;
  Floats x, dy, scale, bias, mean, variance, y, dx, mean_out, variance_out, used, inverse, dscale, dbias;
};

void check(const BatchNormDesc& d) {
  Sim sim;
  Norm norm(d);
  AB_WELL(norm.forward(sim));
  AB_WELL(norm.backward(sim));
  norm.check();
}

TEST_F(CudaNorm, OfABatchByCudnn) {
  check(desc_of(3, 4, 5));
  check(desc_of(7, 3, 1));
  check(desc_of(1, 2, 6));
  EXPECT_THAT(calls(), HasSubstr("norm; norm back; "));
}

TEST_F(CudaNorm, ByThePersistentAlgorithmWhereThatIsAsked) {
  Sim sim(Flags{{"cudnn_batchnorm_spatial_persistent", "true"}});
  Norm norm(desc_of(3, 4, 5));
  AB_WELL(norm.forward(sim));
  AB_WELL(norm.backward(sim));
  norm.check();
  EXPECT_THAT(calls(), HasSubstr("persistent norm; "));
  EXPECT_THAT(calls(), HasSubstr("persistent norm back; "));
}

TEST_F(CudaNorm, ByGivenStatistics) {
  check(desc_of(3, 4, 5, true));
  check(desc_of(600, 2, 1, true));
  check(desc_of(1, 3, 1, true));
  EXPECT_EQ(calls(), "");
}

TEST_F(CudaNorm, OneElementAChannelPasses) {
  check(desc_of(1, 4, 1));
  EXPECT_EQ(calls(), "");
}

TEST_F(CudaNorm, NothingOfNoElements) {
  Sim sim;
  Norm norm(desc_of(0, 4, 5));
  AB_WELL(norm.forward(sim));
  EXPECT_EQ(norm.mean_out, norm.mean);
  AB_WELL(norm.backward(sim));
  EXPECT_EQ(norm.dbias, Floats(4));
  EXPECT_EQ(calls(), "");
}

TEST_F(CudaNorm, ResultsMayBeMissing) {
  for (const bool fixed : {false, true}) {
    for (int left_out = 0; left_out < 3; ++left_out) {
      Sim sim;
      Norm norm(desc_of(3, 4, 5, fixed));
      (left_out ? norm.mean_out : norm.variance_out).clear();
      AB_WELL(norm.forward(sim));
      (left_out == 0 ? norm.dx : left_out == 1 ? norm.dscale : norm.dbias).clear();
      AB_WELL(norm.backward(sim));
      norm.check();
    }
  }
}

TEST_F(CudaNorm, MovesInPlace) {
  Sim sim;
  Norm norm(desc_of(3, 4, 5)), other(desc_of(3, 4, 5));
  AB_WELL(norm.forward(sim));
  AB_WELL(run(
      sim, "batch_norm", other.d,
      {operand(other.x), operand(other.scale), operand(other.bias), operand(other.mean), operand(other.variance),
       operand(other.y), operand(other.mean), operand(other.variance), operand(other.used), operand(other.inverse)}));
  EXPECT_EQ(other.mean, norm.mean_out);
  EXPECT_EQ(other.variance, norm.variance_out);
}

TEST_F(CudaNorm, RefusesWhatDoesNotFit) {
  Sim sim;
  Norm norm(desc_of(3, 4, 5));
  norm.y.resize(59);
  AB_FAILS(norm.forward(sim), AB_INVALID_ARGUMENT, "batch_norm: operand 5 must have 240 bytes, got 236");
  norm.scale.clear();
  AB_FAILS(norm.backward(sim), AB_INVALID_ARGUMENT, "batch_norm: operand 1 must have 16 bytes, got 0");
  AB_FAILS(run(sim, "batch_norm", norm.d, {}), AB_INVALID_ARGUMENT, "batch_norm takes 10 operands, got 0");
  BatchNormDesc d = desc_of(int64_t{1} << 20, 4, 1 << 10);
  AB_FAILS(run(sim, "batch_norm", d, {}), AB_UNSUPPORTED, "cuDNN counts to 2147483647 elements");
  d.dtype = AB_INT64;
  AB_FAILS(run(sim, "batch_norm_grad", d, {}), AB_UNSUPPORTED, "batch_norm: element type 3 is not supported");
}

}  // namespace
}  // namespace anabranch::cuda
