// Products with a fused bias and relu, by a library that computes what cuBLASLt would be asked to.
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

class CudaGemmEpilogue : public Cuda {
 protected:
  void SetUp() override {
    Cuda::SetUp();
    library().function<void()>("fake_cublas_reset")();
  }
  static std::string calls() { return library().function<const char*()>("fake_cublas_calls")(); }
};

// Before anything is chosen cuBLASLt knows the epilogue, and an address that is as aligned as the bias will be.
TEST_F(CudaGemmEpilogue, FusesTheBiasOfEachColumnAndRelu) {
  const std::pair<int32_t, cublasLtEpilogue_t> kinds[] = {
      {device::kGemmBias, CUBLASLT_EPILOGUE_BIAS},
      {device::kGemmRelu, CUBLASLT_EPILOGUE_RELU},
      {device::kGemmBias | device::kGemmRelu, CUBLASLT_EPILOGUE_RELU_BIAS}};
  for (const auto& [epilogue, said] : kinds) {
    library().function<void()>("fake_cublas_reset")();
    Sim sim;
    GemmDesc d = desc_of(3, 4, 5, false, true);
    d.batch = 2;
    d.stride_a = d.stride_b = 20;
    d.row_out = 6;
    d.stride_out = 18;
    d.epilogue = epilogue;
    Product p(sim, d);
    AB_WELL(p.plan());
    for (const int alignment : {16, 4}) {
      const bool biased = epilogue & device::kGemmBias;
      EXPECT_THAT(calls(), HasSubstr("epilogue " + std::to_string(said) + " bias at " +
                                     std::to_string(biased ? alignment : 0) + " "));
    }
    AB_WELL(p.run());
    p.check();
    EXPECT_THAT(calls(), HasSubstr("matmul aligned to 16"));
  }
}

TEST_F(CudaGemmEpilogue, ABiasThatIsNotAlignedGetsAnotherAlgorithmAndEachRunItsOwnBias) {
  Sim sim;
  GemmDesc d = desc_of(2, 2, 2);
  d.epilogue = device::kGemmBias;
  Product p(sim, d);
  AB_WELL(p.plan());
  p.bias += 1;
  AB_WELL(p.run());
  EXPECT_THAT(calls(), HasSubstr("matmul aligned to 4"));
  p.check();
  p.bias += 3;
  AB_WELL(p.run());
  EXPECT_THAT(calls(), HasSubstr("matmul aligned to 16"));
  p.check();
}

TEST_F(CudaGemmEpilogue, RefusesEpiloguesThatLibrariesDoNotHave) {
  Sim sim;
  GemmDesc d = desc_of(2, 3, 4);
  d.epilogue = 4;
  AB_FAILS(Product(sim, d).plan(), AB_INVALID_ARGUMENT, "epilogue must be from 0 to 3, got 4");
  d.epilogue = device::kGemmBias;
  d.beta = 1;
  AB_FAILS(Product(sim, d).plan(), AB_UNSUPPORTED, "epilogue 1 with k 4, beta 1");
  d.beta = 0;
  d.dtype = AB_FLOAT64;
  AB_FAILS(Product(sim, d).plan(), AB_UNSUPPORTED, "epilogue 1 with k 4, beta 0, dtype");
  d = desc_of(2, 3, 0);
  d.epilogue = device::kGemmRelu;
  AB_FAILS(Product(sim, d).plan(), AB_UNSUPPORTED, "epilogue 2 with k 0");
  d = desc_of(2, 3, 4);
  d.epilogue = device::kGemmBias;
  Product p(sim, d);
  AB_WELL(p.plan());
  const ab_operand short_bias[] = {
      {p.a, 32, AB_READ, 0}, {p.b, 48, AB_READ, 0}, {p.out, 24, AB_WRITE, 0}, {p.bias, 11, AB_READ, 0}};
  char scratch[64];
  AB_FAILS(api.library_run(p.queue, p.call, short_bias, 4, scratch, 64), AB_INVALID_ARGUMENT,
           "gemm: bias must have 12 bytes, got 11");
  AB_FAILS(api.library_run(p.queue, p.call, short_bias, 3, scratch, 64), AB_INVALID_ARGUMENT,
           "gemm takes 4 operands, got 3");
}

}  // namespace
}  // namespace anabranch::cuda
