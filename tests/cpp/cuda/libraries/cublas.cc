// libcublasLt.so.13 on the host: products of float and double by columns, as cuBLASLt's documentation describes them.
#include <cublasLt.h>

#include <algorithm>
#include <map>
#include <string>

struct cublasLtContext {};

namespace {

std::string calls;  // what tests ask for

struct Call {
  cublasComputeType_t compute;
  int32_t transposed[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;

  bool has(cublasLtEpilogue_t what) const { return (epilogue & what) != 0; }
};

struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, leading, stride = 0;
  int32_t batch = 1;
};

struct Preference {
  uint64_t room = 0;
  std::map<int, uint32_t> alignments;
};

template <class T> T& as(void* p) { return *static_cast<T*>(p); }
template <class T> const T& as(const void* p) { return *static_cast<const T*>(p); }

// An opaque struct of cuBLASLt that points to one of ours.
template <class Opaque, class T> cublasStatus_t make(Opaque** out, T value) {
  *out = reinterpret_cast<Opaque*>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T> cublasStatus_t destroy(void* p) {
  delete static_cast<T*>(p);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T> T at(const void* p, const Layout& l, int64_t matrix, int64_t i, int64_t j, bool transposed) {
  if (transposed) std::swap(i, j);
  return static_cast<const T*>(p)[matrix * l.stride + j * l.leading + i];
}

template <class T>
void product(const Call& call, T alpha, const void* a, const Layout& la, const void* b, const Layout& lb, T beta,
             void* d, const Layout& ld) {
  const bool ta = call.transposed[0] == CUBLAS_OP_T, tb = call.transposed[1] == CUBLAS_OP_T;
  const int64_t inner = ta ? la.rows : la.columns;
  for (int64_t matrix = 0; matrix < ld.batch; ++matrix) {
    for (int64_t i = 0; i < ld.rows; ++i) {
      for (int64_t j = 0; j < ld.columns; ++j) {
        T sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += at<T>(a, la, matrix, i, k, ta) * at<T>(b, lb, matrix, k, j, tb);
        T& to = static_cast<T*>(d)[matrix * ld.stride + j * ld.leading + i];
        to = alpha * sum + (beta == 0 ? T(0) : beta * to);
        if (call.has(CUBLASLT_EPILOGUE_BIAS)) to += static_cast<const T*>(call.bias)[i];  // one for each row
        if (call.has(CUBLASLT_EPILOGUE_RELU)) to = std::max(to, T(0));
      }
    }
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* fake_cublas_calls() { return calls.c_str(); }
void fake_cublas_reset() { calls.clear(); }

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "a fake status"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  calls += "create ";
  return make(handle, cublasLtContext{});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  calls += "destroy ";
  return destroy<cublasLtContext>(handle);
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute, cudaDataType_t scale) {
  calls += "compute " + std::to_string(compute) + " scale " + std::to_string(scale) + " ";
  return make(out, Call{compute});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) { return destroy<Call>(p); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  const bool is_address = what == CUBLASLT_MATMUL_DESC_BIAS_POINTER;
  if (bytes != (is_address ? sizeof(void*) : sizeof(int32_t))) return CUBLAS_STATUS_INVALID_VALUE;
  Call& call = as<Call>(p);
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: call.transposed[0] = as<int32_t>(value); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: call.transposed[1] = as<int32_t>(value); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: call.epilogue = as<cublasLtEpilogue_t>(value); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: call.bias = as<const void*>(value); break;
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  return make(out, Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p) { return destroy<Layout>(p); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p, cublasLtMatrixLayoutAttribute_t what,
                                                const void* value, size_t) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) as<Layout>(p).batch = as<int32_t>(value);
  if (what == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) as<Layout>(p).stride = as<int64_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) { return make(out, Preference{}); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return destroy<Preference>(p); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    size_t bytes) {
  if (bytes == sizeof(uint64_t))
    as<Preference>(p).room = as<uint64_t>(value);
  else
    as<Preference>(p).alignments[what] = as<uint32_t>(value);
  return CUBLAS_STATUS_SUCCESS;
}
// The algorithm's number is the alignment that it needs; the aligned one needs 64 bytes of workspace.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t call, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t p, int, cublasLtMatmulHeuristicResult_t* best,
                                              int* found) {
  const Preference& preference = as<Preference>(p);
  *found = as<Layout>(a).rows != 13;  // unlucky
  if (preference.alignments.size() != 4) return CUBLAS_STATUS_INVALID_VALUE;
  const uint32_t alignment = preference.alignments.begin()->second;
  if (as<Call>(call).epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    const auto bias = reinterpret_cast<uintptr_t>(as<Call>(call).bias);
    calls += "epilogue " + std::to_string(as<Call>(call).epilogue) + " bias at " + std::to_string(bias) + " ";
  }
  best->algo.data[0] = alignment;
  best->workspaceSize = std::min<uint64_t>(preference.room, alignment == 16 ? 64 : 0);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t la, const void* b, cublasLtMatrixLayout_t lb, const void* beta,
                              const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t room, cudaStream_t) {
  const Call& call = as<Call>(p);
  calls += "matmul aligned to " + std::to_string(algorithm->data[0]) + " ";
  if (reinterpret_cast<uintptr_t>(call.bias) % algorithm->data[0]) return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->data[0] == 16 && (!workspace || room < 64)) return CUBLAS_STATUS_INVALID_VALUE;
  const Layout &x = as<Layout>(la), &y = as<Layout>(lb), &z = as<Layout>(ld);
  if (z.type == CUDA_R_64F) {
    product(call, as<double>(alpha), a, x, b, y, as<double>(beta), d, z);
  } else if (z.type == CUDA_R_32F) {
    product(call, as<float>(alpha), a, x, b, y, as<float>(beta), d, z);
  } else {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
