// cuBLASLt, opened when it is first needed.
#pragma once
#include <cublasLt.h>

#include <memory>

#include "library_call.h"

namespace anabranch::cuda {

struct CublasLt {
  decltype(&::cublasLtGetVersion) cublasLtGetVersion;
  decltype(&::cublasLtGetStatusString) cublasLtGetStatusString;
  decltype(&::cublasLtCreate) cublasLtCreate;
  decltype(&::cublasLtDestroy) cublasLtDestroy;
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate;
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate;
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy;
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute;
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmul) cublasLtMatmul;
};

const CublasLt& cublas_lt();  // Unavailable when it is not there
std::shared_ptr<cublasLtContext> cublas_handle(Process& process, int device);

ab_status status_of(cublasStatus_t status);

// Of calls that put nothing into a queue.
template <class... Doing> void well(cublasStatus_t status, const Doing&... doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status_of(status), doing..., ": cuBLASLt: ", cublas_lt().cublasLtGetStatusString(status));
}

}  // namespace anabranch::cuda
