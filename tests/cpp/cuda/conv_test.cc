// Convolutions by cuDNN, with a library that computes them on the host from what cuDNN would be told.
#include <cudnn.h>

#include <vector>

#include "convolution.h"
#include "loaded.h"

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

// Filters have their channels in front; one of a single element a channel lies as if they came last.
TEST_F(CudaConv, FiltersOfOneElementAChannelAreNotCopied) {
  Sim sim;
  Convolution one(sim, desc_of(kConvForward, {{5, 1}, {6, 1}}, 1, true));
  AB_WELL(one.plan());
  EXPECT_EQ(one.workspace, size_t{3} << 20);
  AB_WELL(one.run());
  EXPECT_EQ(one.found, one.expected);
  Convolution several(sim, desc_of(kConvForward, {{5, 1}, {6, 2}}, 1, true));
  AB_WELL(several.plan());
  EXPECT_EQ(several.workspace, (size_t{3} << 20) + 256);
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

TEST_F(CudaConv, TimesAlgorithmsOnceForAShapeWhereThatIsAsked) {
  Sim sim(Flags{{"cudnn_exhaustive_search", "true"}});
  for (const int32_t pass : kPasses) {
    for (int iteration = 0; iteration < 2; ++iteration) {
      library().function<void()>("fake_cudnn_reset")();
      Convolution c(sim, desc_of(pass, {{4, 2}, {4, 2}}));
      AB_WELL(c.plan());
      AB_WELL(c.run());
      EXPECT_EQ(c.found, c.expected);
      EXPECT_THAT(calls(), HasSubstr("by 1"));
      EXPECT_EQ(calls().find("timed") != std::string::npos, iteration == 0);
    }
  }
}

TEST_F(CudaConv, TakesWhatIsProposedWhereTimingFails) {
  Sim sim(Flags{{"cudnn_exhaustive_search", "true"}});
  library().function<void()>("fake_cudnn_lack_memory")();
  Convolution c(sim, desc_of(kConvForward, {{4, 2}, {4, 2}}));
  AB_WELL(c.plan());
  AB_WELL(c.run());
  EXPECT_THAT(calls(), HasSubstr("timed; math"));
  EXPECT_THAT(calls(), HasSubstr("forward by 0"));
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
  AB_FAILS(Convolution(sim, d).plan(), AB_UNSUPPORTED, "conv: element type 2 is not supported");
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
