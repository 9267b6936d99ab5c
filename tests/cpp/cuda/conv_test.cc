// Convolutions by cuDNN, with a library that computes them on the host from what cuDNN would be told.
#include <cudnn.h>

#include <vector>

#include "harness.h"
#include "loaded.h"
#include "ops/device/args_library.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

const Loaded& library() {
  static const Loaded loaded("/libcudnn.so.9");
  return loaded;
}

class CudaConv : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    library().function<void()>("fake_cudnn_reset")();
  }
  static std::string calls() { return library().function<const char*()>("fake_cudnn_calls")(); }
};

struct Axis {
  int64_t in, kernel, stride = 1, dilation = 1, before = 0, after = 0;
};

ConvDesc desc_of(int32_t pass, std::vector<Axis> axes, int64_t groups = 1, bool last = false) {
  ConvDesc d{};
  d.batch = 2;
  d.in_channels = 2 * groups;
  d.out_channels = 3 * groups;
  d.groups = groups;
  d.pass = pass;
  d.dtype = AB_FLOAT32;
  WindowDesc& w = d.window;
  w.axes = static_cast<int32_t>(axes.size());
  w.channels_last = last;
  while (axes.size() < 3) axes.insert(axes.begin(), Axis{1, 1});
  for (size_t k = 0; k < 3; ++k) {
    const Axis& a = axes[k];
    w.in[k] = a.in;
    w.kernel[k] = a.kernel;
    w.stride[k] = a.stride;
    w.dilation[k] = a.dilation;
    w.before[k] = a.before;
    w.after[k] = a.after;
    w.out[k] = (a.in + a.before + a.after - a.dilation * (a.kernel - 1) - 1) / a.stride + 1;
  }
  return d;
}

// A convolution on device 0, with what it must be.
struct Convolution {
  Convolution(Sim& sim, const ConvDesc& d) : d(d), queue(sim.queue("compute")) {
    const auto volume = [](const int64_t* e) { return static_cast<size_t>(e[0] * e[1] * e[2]); };
    ins = volume(d.window.in);
    outs = volume(d.window.out);
    kernels = volume(d.window.kernel);
    image = fill(sim, static_cast<size_t>(d.batch * d.in_channels) * ins, 1);
    filter = fill(sim, static_cast<size_t>(d.out_channels * d.in_channels / d.groups) * kernels, 2);
    output = fill(sim, static_cast<size_t>(d.batch * d.out_channels) * outs, 3);
  }
  static std::vector<float> fill(Sim&, size_t n, size_t seed) {
    std::vector<float> p(n);
    for (size_t i = 0; i < n; ++i) p[i] = static_cast<float>((i * 7 + seed * 5) % 11) - 5;
    return p;
  }
  int plan() { return api.library_plan(0, "conv", &d, sizeof d, &call, &workspace); }
  int run() {
    const auto operand = [](std::vector<float>& v, uint32_t access) {
      return ab_operand{v.data(), v.size() * sizeof(float), access, 0};
    };
    std::vector<float>*a = &image, *b = &filter, *c = &output;
    if (d.pass == kConvBackwardData) std::swap(a, c);
    if (d.pass == kConvBackwardFilter) std::swap(b, c);
    expected = of_host();
    const ab_operand operands[] = {operand(*a, AB_READ), operand(*b, AB_READ), operand(*c, AB_WRITE)};
    std::vector<char> scratch(workspace + 1, 0x55);
    const int status = api.library_run(queue, call, operands, 3, workspace ? scratch.data() : nullptr, workspace);
    EXPECT_EQ(scratch.back(), 0x55);
    found = *c;
    return status;
  }
  size_t place(int64_t n, int64_t c, int64_t channels, int64_t s, size_t space) const {
    const auto k = static_cast<int64_t>(space);
    return static_cast<size_t>(d.window.channels_last ? (n * k + s) * channels + c : (n * channels + c) * k + s);
  }
  std::vector<float> of_host() const {
    std::vector<float> result(d.pass == kConvForward        ? output.size()
                              : d.pass == kConvBackwardData ? image.size()
                                                            : filter.size());
    const WindowDesc& w = d.window;
    const int64_t in_group = d.in_channels / d.groups, out_group = d.out_channels / d.groups;
    for (int64_t n = 0; n < d.batch; ++n) {
      for (int64_t o = 0; o < d.out_channels; ++o) {
        for (int64_t s = 0; s < static_cast<int64_t>(outs); ++s) {
          for (int64_t c = 0; c < in_group; ++c) {
            for (int64_t k = 0; k < static_cast<int64_t>(kernels); ++k) {
              const int64_t at[3] = {s / (w.out[1] * w.out[2]), s / w.out[2] % w.out[1], s % w.out[2]};
              const int64_t by[3] = {k / (w.kernel[1] * w.kernel[2]), k / w.kernel[2] % w.kernel[1], k % w.kernel[2]};
              int64_t from = 0;
              bool inside = true;
              for (int a = 0; a < 3; ++a) {
                const int64_t i = at[a] * w.stride[a] - w.before[a] + by[a] * w.dilation[a];
                inside = inside && i >= 0 && i < w.in[a];
                from = from * w.in[a] + i;
              }
              if (!inside) continue;
              const size_t x = place(n, o / out_group * in_group + c, d.in_channels, from, ins);
              const size_t f = static_cast<size_t>((o * in_group + c) * static_cast<int64_t>(kernels) + k);
              const size_t y = place(n, o, d.out_channels, s, outs);
              if (d.pass == kConvForward) result[y] += image[x] * filter[f];
              if (d.pass == kConvBackwardData) result[x] += output[y] * filter[f];
              if (d.pass == kConvBackwardFilter) result[f] += image[x] * output[y];
            }
          }
        }
      }
    }
    return result;
  }

  const ConvDesc d;
  ab_queue* queue;
  size_t ins, outs, kernels;
  std::vector<float> image, filter, output, expected, found;
  ab_library* call = nullptr;
  size_t workspace = 0;
};

constexpr int32_t kPasses[] = {kConvForward, kConvBackwardData, kConvBackwardFilter};

void check_all(const std::vector<Axis>& axes, int64_t groups = 1) {
  for (const int32_t pass : kPasses) {
    for (const bool last : {false, true}) {
      Sim sim;
      Convolution c(sim, desc_of(pass, axes, groups, last));
      AB_WELL(c.plan());
      AB_WELL(c.run());
      EXPECT_EQ(c.found, c.expected) << "pass " << pass << ", channels last " << last;
    }
  }
}

TEST_F(CudaConv, ImagesInEveryPassAndLayout) { check_all({{5, 3, 1, 1, 1, 1}, {4, 2}}); }
TEST_F(CudaConv, StridesAndDilations) { check_all({{9, 2, 2, 3, 2, 2}, {8, 3, 3, 1, 1, 1}}); }
TEST_F(CudaConv, Groups) { check_all({{4, 3, 1, 1, 1, 1}, {4, 1}}, 3); }
TEST_F(CudaConv, Volumes) { check_all({{3, 2, 1, 1, 1, 0}, {4, 2, 2}, {3, 3, 1, 1, 1, 1}}, 2); }
TEST_F(CudaConv, PaddingOfOneSide) {
  check_all({{5, 2, 1, 1, 0, 1}, {4, 3, 1, 1, 2, 0}});
  check_all({{5, 3, 2, 1, 0, 2}, {6, 3, 2, 1, 0, 1}});  // as "SAME" pads
}

TEST_F(CudaConv, WhatCudnnPadsItselfIsNotCopied) {
  Sim sim;
  Convolution even(sim, desc_of(kConvForward, {{5, 3, 1, 1, 1, 1}, {6, 3, 2, 1, 1, 0}}));
  AB_WELL(even.plan());
  EXPECT_EQ(even.workspace, size_t{3} << 20);
  Convolution odd(sim, desc_of(kConvForward, {{5, 2, 1, 1, 0, 1}, {5, 3, 1, 1, 1, 1}}));
  AB_WELL(odd.plan());
  EXPECT_EQ(odd.workspace, (size_t{3} << 20) + 512);  // 2 * 2 * 6 * 5 floats
}

TEST_F(CudaConv, ChannelsComeFirstWhereCudnnHasNothingElse) {
  library().function<void()>("fake_cudnn_lack_nhwc")();
  check_all({{5, 3, 1, 1, 1, 1}, {4, 2}});
}

TEST_F(CudaConv, KeepsToTheLimitOfItsWorkspace) {
  Sim sim(Flags{{"conv_workspace_size_limit", "2"}});
  Convolution c(sim, desc_of(kConvForward, {{4, 2}, {4, 2}}));
  AB_WELL(c.plan());
  EXPECT_EQ(c.workspace, 64u);
  AB_WELL(c.run());
  EXPECT_THAT(calls(), HasSubstr("forward by 1"));
  EXPECT_EQ(c.found, c.expected);
}

TEST_F(CudaConv, TakesADeterministicAlgorithmWhereThatIsAsked) {
  Sim sim(Flags{{"cudnn_deterministic", "true"}});
  for (const int32_t pass : kPasses) {
    Convolution c(sim, desc_of(pass, {{4, 2}, {4, 2}}));
    AB_WELL(c.plan());
    AB_WELL(c.run());
  }
  EXPECT_THAT(calls(), Not(HasSubstr("by 0")));
}

TEST_F(CudaConv, SaysWhatHasNoAlgorithm) {
  Sim sim(Flags{{"conv_workspace_size_limit", "0"}, {"cudnn_deterministic", "1"}});
  AB_FAILS(Convolution(sim, desc_of(kConvForward, {{4, 2}, {4, 2}})).plan(), AB_UNSUPPORTED,
           "no deterministic algorithm for 2 to 3 channels, windows of 1x2x2, dtype 5, within FLAGS_conv_workspace");
}

TEST_F(CudaConv, ComputesInTheTypeThatTheFlagAllows) {
  const auto plan_of = [](int32_t dtype, int32_t rounded, const char* tf32) {
    library().function<void()>("fake_cudnn_reset")();
    Sim sim(Flags{{"enable_cublas_tensor_op_math", tf32}});
    ConvDesc d = desc_of(kConvForward, {{4, 2}, {4, 2}});
    d.dtype = dtype;
    d.rounded = rounded;
    Convolution c(sim, d);
    EXPECT_EQ(c.plan(), AB_OK) << last_error();
    EXPECT_EQ(api.library_free(c.call), AB_OK);
    return calls();
  };
  const auto said = [](cudnnMathType_t math, cudnnDataType_t data, cudnnDataType_t compute) {
    return HasSubstr("math " + std::to_string(math) + " type " + std::to_string(data) + "/" + std::to_string(compute));
  };
  EXPECT_THAT(plan_of(AB_FLOAT32, 0, "false"), said(CUDNN_FMA_MATH, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT));
  EXPECT_THAT(plan_of(AB_FLOAT32, 0, "true"), said(CUDNN_DEFAULT_MATH, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT));
  EXPECT_THAT(plan_of(AB_FLOAT32, 1, "false"), said(CUDNN_DEFAULT_MATH, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT));
  EXPECT_THAT(plan_of(AB_FLOAT64, 0, "false"), said(CUDNN_DEFAULT_MATH, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE));
  EXPECT_THAT(plan_of(AB_FLOAT16, 0, "false"), said(CUDNN_TENSOR_OP_MATH, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT));
  EXPECT_THAT(plan_of(AB_BFLOAT16, 0, "false"), said(CUDNN_TENSOR_OP_MATH, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT));
}

TEST_F(CudaConv, SumsOfNothingAreZero) {
  Sim sim;
  ConvDesc d = desc_of(kConvBackwardFilter, {{4, 2}, {4, 2}});
  d.batch = 0;
  Convolution c(sim, d);
  AB_WELL(c.plan());
  AB_WELL(c.run());
  EXPECT_EQ(c.found, std::vector<float>(c.filter.size()));
  EXPECT_THAT(calls(), Not(HasSubstr("filter by")));
}

TEST_F(CudaConv, RefusesWhatDoesNotFit) {
  Sim sim;
  ConvDesc d = desc_of(kConvForward, {{4, 2}, {4, 2}});
  Convolution c(sim, d);
  AB_WELL(c.plan());
  const ab_operand few[] = {
      {c.image.data(), 4, AB_READ, 0}, {c.image.data(), 4, AB_READ, 0}, {c.image.data(), 4, AB_WRITE, 0}};
  std::vector<char> scratch(c.workspace);
  AB_FAILS(api.library_run(c.queue, c.call, few, 3, scratch.data(), c.workspace), AB_INVALID_ARGUMENT,
           "conv: operand 0 must have 256 bytes, got 4");
  AB_FAILS(api.library_run(c.queue, c.call, few, 2, scratch.data(), c.workspace), AB_INVALID_ARGUMENT,
           "conv takes 3 operands, got 2");
  d.window.out[1] = 9;
  EXPECT_EQ(Convolution(sim, d).plan(), AB_OK) << last_error();  // windows over padding alone
  d.window.out[1] = 1;
  AB_FAILS(Convolution(sim, d).plan(), AB_INVALID_ARGUMENT, "do not fit");
  d = desc_of(kConvForward, {{4, 2}, {4, 2}});
  d.groups = 3;
  AB_FAILS(Convolution(sim, d).plan(), AB_INVALID_ARGUMENT, "channels do not come in 3 groups");
  d = desc_of(5, {{4, 2}, {4, 2}});
  AB_FAILS(Convolution(sim, d).plan(), AB_INVALID_ARGUMENT, "no pass 5");
  d = desc_of(kConvForward, {{4, 2}, {4, 2}});
  d.dtype = AB_INT32;
  AB_FAILS(Convolution(sim, d).plan(), AB_UNSUPPORTED, "conv: of element type 2");
  AB_FAILS(api.library_plan(0, "conv", &d, 8, &c.call, &c.workspace), AB_INVALID_ARGUMENT, "conv is described by");
}

TEST_F(CudaConv, FailuresSayWhetherTheDeviceIsLost) {
  Sim sim;
  Convolution c(sim, desc_of(kConvForward, {{4, 2}, {4, 2}}));
  AB_WELL(c.plan());
  library().function<void(int)>("fake_cudnn_fail")(CUDNN_STATUS_EXECUTION_FAILED);
  AB_FAILS(c.run(), AB_INTERNAL, "conv: cuDNN: a fake status");
  library().function<void(int)>("fake_cudnn_fail")(CUDNN_STATUS_EXECUTION_FAILED);
  fail_next("cudaStreamQuery", cudaErrorIllegalAddress);
  AB_FAILS(c.run(), AB_FAULT, "conv: cuDNN: a fake status: an illegal access");
}

}  // namespace
}  // namespace anabranch::cuda
