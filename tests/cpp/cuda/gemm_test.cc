// Products by cuBLASLt, with a library that computes them on the host from what cuBLASLt would be told.
#include <cublasLt.h>

#include "harness.h"
#include "loaded.h"
#include "product.h"

namespace anabranch::cuda {
namespace {

using testing::HasSubstr;

const Loaded& library() {
  static const Loaded loaded("/libcublasLt.so.13");
  return loaded;
}

class CudaGemm : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    library().function<void()>("fake_cublas_reset")();
  }
  static std::string calls() { return library().function<const char*()>("fake_cublas_calls")(); }
};

TEST_F(CudaGemm, MultipliesRowByRow) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Sim sim;
      Product p(sim, desc_of(3, 4, 5, ta, tb));
      AB_WELL(p.plan());
      AB_WELL(p.run());
      p.check();
      AB_WELL(api.library_free(p.call));
    }
  }
}

TEST_F(CudaGemm, KeepsToStridesBatchesAndScales) {
  for (const bool ta : {false, true}) {
    Sim sim;
    GemmDesc d = desc_of(2, 3, 4, ta, !ta);
    d.batch = 3;
    d.row_a += 1;
    d.row_b += 2;
    d.row_out += 3;
    d.stride_a = 40;
    d.stride_b = 0;  // one b for all
    d.stride_out = 25;
    d.alpha = -2;
    d.beta = 0.5;
    Product p(sim, d);
    AB_WELL(p.plan());
    AB_WELL(p.run());
    p.check();
  }
}

TEST_F(CudaGemm, SumsOfNothingAreZero) {
  Sim sim;
  GemmDesc d = desc_of(2, 3, 0);
  d.row_out = 5;
  d.row_a = 1;
  d.batch = 2;
  d.stride_out = 12;
  Product p(sim, d);
  AB_WELL(p.plan());
  AB_WELL(p.run());
  p.check();
  d.beta = 1;
  Product same(sim, d);
  AB_WELL(same.plan());
  AB_WELL(same.run());
  same.check();
  d.beta = 2;
  AB_FAILS(Product(sim, d).plan(), AB_UNSUPPORTED, "k 0 with beta 2");
  Product none(sim, desc_of(0, 3, 4));
  AB_WELL(none.plan());
  AB_WELL(none.run());
  none.check();
  EXPECT_THAT(calls(), testing::Not(HasSubstr("matmul")));
}

TEST_F(CudaGemm, UnalignedOperandsGetTheirOwnAlgorithm) {
  Sim sim;
  Product p(sim, desc_of(2, 2, 2));
  AB_WELL(p.plan());
  EXPECT_EQ(p.workspace, 64u);
  AB_WELL(p.run());
  EXPECT_THAT(calls(), HasSubstr("matmul aligned to 16"));
  AB_WELL(p.run(1));
  EXPECT_THAT(calls(), HasSubstr("matmul aligned to 4"));
}

std::string plan_of(int dtype, const Flags& flags) {
  Sim sim(flags);
  GemmDesc d = desc_of(2, 2, 2);
  d.dtype = dtype;
  Product p(sim, d);
  EXPECT_EQ(p.plan(), AB_OK) << last_error();
  EXPECT_EQ(api.library_free(p.call), AB_OK);
  return library().function<const char*()>("fake_cublas_calls")();
}

TEST_F(CudaGemm, ComputesInTheTypeThatTheFlagAllows) {
  const auto said = [](cublasComputeType_t compute, cudaDataType_t scale) {
    return HasSubstr("compute " + std::to_string(compute) + " scale " + std::to_string(scale));
  };
  EXPECT_THAT(plan_of(AB_FLOAT32, {}), said(CUBLAS_COMPUTE_32F, CUDA_R_32F));
  EXPECT_THAT(plan_of(AB_FLOAT32, {{"enable_cublas_tensor_op_math", "true"}}),
              said(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F));
  EXPECT_THAT(plan_of(AB_FLOAT64, {{"enable_cublas_tensor_op_math", "1"}}), said(CUBLAS_COMPUTE_64F, CUDA_R_64F));
  library().function<void()>("fake_cublas_reset")();
  EXPECT_THAT(plan_of(AB_FLOAT16, {{"enable_cublas_tensor_op_math", "false"}}), said(CUBLAS_COMPUTE_32F, CUDA_R_32F));
}

TEST_F(CudaGemm, Float64KeepsItsScales) {
  Sim sim;
  GemmDesc d = desc_of(1, 1, 1);
  d.dtype = AB_FLOAT64;
  d.alpha = 0.1;
  ab_library* call = nullptr;
  size_t workspace = 0;
  AB_WELL(api.library_plan(0, "gemm", &d, sizeof d, &call, &workspace));
  double a = 3, b = 7, out = 0;
  char scratch[64];
  const ab_operand operands[] = {{&a, 8, AB_READ, 0}, {&b, 8, AB_READ, 0}, {&out, 8, AB_WRITE, 0}};
  AB_WELL(api.library_run(sim.queue("compute"), call, operands, 3, scratch, workspace));
  EXPECT_EQ(out, 0.1 * 21);
}

TEST_F(CudaGemm, RefusesWhatDoesNotFit) {
  Sim sim;
  GemmDesc d = desc_of(3, 4, 5);
  Product p(sim, d);
  AB_WELL(p.plan());
  const ab_operand few[] = {{p.a, 60, AB_READ, 0}, {p.b, 79, AB_READ, 0}, {p.out, 48, AB_WRITE, 0}};
  char scratch[64];
  AB_FAILS(api.library_run(p.queue, p.call, few, 3, scratch, 64), AB_INVALID_ARGUMENT,
           "gemm: b must have 80 bytes, got 79");
  AB_FAILS(api.library_run(p.queue, p.call, few, 2, scratch, 64), AB_INVALID_ARGUMENT, "gemm takes 3 operands, got 2");
  AB_FAILS(api.library_run(p.queue, p.call, few, 3, scratch, 63), AB_INVALID_ARGUMENT,
           "a workspace of 64 bytes, got 63");
  AB_FAILS(api.library_run(sim.queue("compute", 1), p.call, few, 3, scratch, 64), AB_INVALID_ARGUMENT,
           "planned for device 0");
  AB_FAILS(api.library_plan(0, "gemm", &d, 8, &p.call, &p.workspace), AB_INVALID_ARGUMENT, "gemm is described by");
  AB_FAILS(api.library_plan(0, "conv2d", &d, sizeof d, &p.call, &p.workspace), AB_NOT_FOUND, "conv2d");
  d.row_a = 4;
  AB_FAILS(Product(sim, d).plan(), AB_INVALID_ARGUMENT, "rows of a must be at least 5 elements apart, got 4");
  d = desc_of(3, 4, 5);
  d.dtype = AB_INT32;
  AB_FAILS(Product(sim, d).plan(), AB_UNSUPPORTED, "gemm: element type 2 is not supported");
  AB_FAILS(Product(sim, desc_of(3, 13, 5)).plan(), AB_UNSUPPORTED, "no algorithm for m 3, n 13, k 5");
}

TEST_F(CudaGemm, FailuresSayWhetherTheDeviceIsLost) {
  Sim sim;
  GemmDesc d = desc_of(2, 2, 2);
  d.dtype = AB_BFLOAT16;
  Product p(sim, d);
  AB_WELL(p.plan());
  AB_FAILS(p.run(), AB_INTERNAL, "gemm: cuBLASLt: a fake status");
  fail_next("cudaStreamQuery", cudaErrorIllegalAddress);
  AB_FAILS(p.run(), AB_FAULT, "gemm: cuBLASLt: a fake status: an illegal access");
}

TEST_F(CudaGemm, OpensTheLibraryOncePerDeviceAndClosesIt) {
  {
    Sim sim;
    Product one(sim, desc_of(2, 2, 2)), two(sim, desc_of(3, 3, 3));
    AB_WELL(one.plan());
    AB_WELL(two.plan());
    ab_device_info info{};
    info.size = sizeof info;
    AB_WELL(api.device_info(0, &info));
    EXPECT_THAT(info.libraries, HasSubstr("cuBLASLt 13.1.0"));
    AB_WELL(api.library_free(one.call));
    AB_WELL(api.library_free(two.call));
    EXPECT_EQ(calls().find("create"), calls().rfind("create"));
  }
  EXPECT_THAT(calls(), HasSubstr("destroy"));
}

}  // namespace
}  // namespace anabranch::cuda
