#include "open_cublas.h"

#include "open_library.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

CublasLt opened() {
  CublasLt t{};
  open_library({"cuBLASLt", "libcublasLt.so.13", "nvidia/cu13/lib", 130000}, [&t](Symbols& symbols) {
    symbols.AB_TAKE(t, cublasLtGetVersion)
        .AB_TAKE(t, cublasLtGetStatusString)
        .AB_TAKE(t, cublasLtCreate)
        .AB_TAKE(t, cublasLtDestroy)
        .AB_TAKE(t, cublasLtMatmulDescCreate)
        .AB_TAKE(t, cublasLtMatmulDescDestroy)
        .AB_TAKE(t, cublasLtMatmulDescSetAttribute)
        .AB_TAKE(t, cublasLtMatrixLayoutCreate)
        .AB_TAKE(t, cublasLtMatrixLayoutDestroy)
        .AB_TAKE(t, cublasLtMatrixLayoutSetAttribute)
        .AB_TAKE(t, cublasLtMatmulPreferenceCreate)
        .AB_TAKE(t, cublasLtMatmulPreferenceDestroy)
        .AB_TAKE(t, cublasLtMatmulPreferenceSetAttribute)
        .AB_TAKE(t, cublasLtMatmulAlgoGetHeuristic)
        .AB_TAKE(t, cublasLtMatmul);
    return [&t] { return static_cast<int>(t.cublasLtGetVersion()); };
  });
  return t;
}

}  // namespace

const CublasLt& cublas_lt() {
  static const CublasLt table = opened();  // tried again by the next call after a failure
  return table;
}

std::shared_ptr<cublasLtContext> cublas_handle(Process& process, int device) {
  const std::shared_ptr<void> handle = process.kept("cuBLASLt", device, [device]() -> std::shared_ptr<void> {
    const CublasLt& lt = cublas_lt();
    use_device(device);
    cublasLtHandle_t handle = nullptr;
    well(lt.cublasLtCreate(&handle), "opening device ", device);
    return {handle, [&lt](cublasLtHandle_t h) { (void)lt.cublasLtDestroy(h); }};
  });
  return std::static_pointer_cast<cublasLtContext>(handle);
}

ab_status status_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH: return AB_UNSUPPORTED;
    case CUBLAS_STATUS_ALLOC_FAILED: return AB_RESOURCE_EXHAUSTED;
    case CUBLAS_STATUS_NOT_INITIALIZED: return AB_UNAVAILABLE;
    default: return AB_INTERNAL;
  }
}

}  // namespace anabranch::cuda
