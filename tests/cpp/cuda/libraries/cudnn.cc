// libcudnn.so.9 on the host: convolutions and normalization of float, as cuDNN's documentation describes them, of any
// layout that descriptors say.
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "cudnn_views.h"

namespace {

std::string calls;  // what tests ask for
cudnnStatus_t next = CUDNN_STATUS_SUCCESS;
bool lacks_nhwc = false, lacks_memory = false;

cudnnStatus_t answer() {
  const cudnnStatus_t status = next;
  next = CUDNN_STATUS_SUCCESS;
  return status;
}

// Algorithm 0 is fast, needs 3 MiB and is not deterministic; algorithm 1 needs 64 bytes; 2 does not exist.
template <class Perf>
cudnnStatus_t propose(const cudnnConvolutionStruct& c, const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                      const cudnnTensorStruct& y, int* count, Perf* found) {
  if (!fit(c, x, w, y)) return CUDNN_STATUS_BAD_PARAM;
  if (lacks_nhwc && w.format == CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
  calls += "math " + std::to_string(c.math) + " type " + std::to_string(x.type) + "/" + std::to_string(c.type) + "; ";
  using Algorithm = decltype(found->algo);
  found[0] = {static_cast<Algorithm>(2), CUDNN_STATUS_NOT_SUPPORTED, 0, 0, CUDNN_DETERMINISTIC, c.math, {}};
  found[1] = {static_cast<Algorithm>(0), CUDNN_STATUS_SUCCESS, 1, 3 << 20, CUDNN_NON_DETERMINISTIC, c.math, {}};
  found[2] = {static_cast<Algorithm>(1), CUDNN_STATUS_SUCCESS, 2, 64, CUDNN_DETERMINISTIC, c.math, {}};
  *count = 3;
  return CUDNN_STATUS_SUCCESS;
}

// Timed, algorithm 1 is the faster one. Memory to time it in may be missing.
template <class Perf>
cudnnStatus_t time(const cudnnConvolutionStruct& c, const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                   const cudnnTensorStruct& y, int* count, Perf* found) {
  calls += "timed; ";
  if (lacks_memory) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  const cudnnStatus_t status = propose(c, x, w, y, count, found);
  if (status == CUDNN_STATUS_SUCCESS) std::swap(found[1], found[2]);
  return status;
}

cudnnStatus_t begin(const char* what, int algorithm, const void* workspace, size_t room, const cudnnTensorStruct& x) {
  calls += std::string(what) + " by " + std::to_string(algorithm) + "; ";
  const size_t needed = algorithm == 0 ? 3 << 20 : 64;
  if (!workspace || room < needed) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  memset(const_cast<void*>(workspace), 0x7f, needed);  // which is its own
  return x.type == CUDNN_DATA_FLOAT ? answer() : CUDNN_STATUS_EXECUTION_FAILED;
}

bool is(const void* scale, float value) { return *static_cast<const float*>(scale) == value; }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* fake_cudnn_calls() { return calls.c_str(); }
void fake_cudnn_reset() {
  calls.clear();
  lacks_nhwc = lacks_memory = false;
  next = CUDNN_STATUS_SUCCESS;
}
void fake_cudnn_fail(int status) { next = static_cast<cudnnStatus_t>(status); }
void fake_cudnn_lack_nhwc() { lacks_nhwc = true; }
void fake_cudnn_lack_memory() { lacks_memory = true; }

size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "a fake status"; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  calls += "create; ";
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  calls += "destroy; ";
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  return stream ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* t) {
  *t = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int rank, const int* extents,
                                         const int* strides) {
  if (rank < 4 || rank > 5) return CUDNN_STATUS_NOT_SUPPORTED;
  *t = {type, {extents, extents + rank}, {strides, strides + rank}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t) {
  delete t;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* f) {
  *f = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int rank, const int* extents) {
  *f = {type, format, {extents, extents + rank}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t f) {
  delete f;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* c) {
  *c = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int axes, const int* padding,
                                              const int* stride, const int* dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  if (mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
  c->padding.assign(padding, padding + axes);
  c->stride.assign(stride, stride + axes);
  c->dilation.assign(dilation, dilation + axes);
  c->type = type;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups) {
  c->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math) {
  c->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t c) {
  delete c;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                     cudnnTensorDescriptor_t y, int, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* found) {
  return propose(*c, *x, *w, *y, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t x, int, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return propose(*c, *x, *w, *y, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t w, int, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return propose(*c, *x, *w, *y, count, found);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                                   cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, int,
                                                   int* count, cudnnConvolutionFwdAlgoPerf_t* found) {
  return time(*c, *x, *w, *y, count, found);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                        cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                        cudnnTensorDescriptor_t x, int, int* count,
                                                        cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return time(*c, *x, *w, *y, count, found);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                          cudnnFilterDescriptor_t w, int, int* count,
                                                          cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return time(*c, *x, *w, *y, count, found);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t xd, const void* x,
                                      cudnnFilterDescriptor_t wd, const void* w, cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t room,
                                      const void* beta, cudnnTensorDescriptor_t yd, void* y) {
  if (const cudnnStatus_t status = begin("forward", algorithm, workspace, room, *xd)) return status;
  if (!is(alpha, 1) || !is(beta, 0)) return CUDNN_STATUS_BAD_PARAM;
  const View from(x, *xd), by(w, *wd), to(y, *yd);
  to.each([&](const std::vector<int>& o) {
    float sum = 0;
    each_part(*c, from, by, o, [&](const auto& i, const auto& k) { sum += from.at(i) * by.at(k); });
    to.at(o) = sum;
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void*, cudnnFilterDescriptor_t wd, const void* w,
                                           cudnnTensorDescriptor_t yd, const void* dy, cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t room,
                                           const void*, cudnnTensorDescriptor_t xd, void* dx) {
  if (const cudnnStatus_t status = begin("data", algorithm, workspace, room, *xd)) return status;
  const View to(dx, *xd), by(w, *wd), from(dy, *yd);
  to.each([&](const std::vector<int>& i) { to.at(i) = 0; });
  from.each([&](const std::vector<int>& o) {
    each_part(*c, to, by, o, [&](const auto& i, const auto& k) { to.at(i) += from.at(o) * by.at(k); });
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void*, cudnnTensorDescriptor_t xd, const void* x,
                                             cudnnTensorDescriptor_t yd, const void* dy, cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t room,
                                             const void*, cudnnFilterDescriptor_t wd, void* dw) {
  if (const cudnnStatus_t status = begin("filter", algorithm, workspace, room, *xd)) return status;
  const View from(x, *xd), to(dw, *wd), by(dy, *yd);
  to.each([&](const std::vector<int>& k) { to.at(k) = 0; });
  by.each([&](const std::vector<int>& o) {
    each_part(*c, from, to, o, [&](const auto& i, const auto& k) { to.at(k) += from.at(i) * by.at(o); });
  });
  return CUDNN_STATUS_SUCCESS;
}

// Moving variances are unbiased, as in cuDNN.
cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t, cudnnBatchNormMode_t mode, const void*, const void*,
                                                     cudnnTensorDescriptor_t xd, const void* x,
                                                     cudnnTensorDescriptor_t yd, void* y, cudnnTensorDescriptor_t,
                                                     const void* scale, const void* bias, double factor, void* mean,
                                                     void* variance, double epsilon, void* used, void* inverse) {
  calls += mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? "persistent norm; " : "norm; ";
  if (mode == CUDNN_BATCHNORM_PER_ACTIVATION) return CUDNN_STATUS_BAD_PARAM;
  const View from(x, *xd), to(y, *yd);
  const auto share = static_cast<float>(factor), keep = static_cast<float>(1 - factor);
  for (int k = 0; k < xd->extents[1]; ++k) {
    double sum = 0, squares = 0, n = 0;
    from.each([&](const auto& i) { i[1] == k ? (sum += from.at(i), ++n) : 0; });
    const double m = sum / n;
    from.each([&](const auto& i) { i[1] == k ? squares += (from.at(i) - m) * (from.at(i) - m) : 0; });
    const double inv = 1 / std::sqrt(squares / n + epsilon);
    const auto at = [k](auto* p) -> auto& { return static_cast<float*>(const_cast<void*>(p))[k]; };
    at(mean) = at(mean) * keep + static_cast<float>(m) * share;
    at(variance) = at(variance) * keep + static_cast<float>(squares / (n - 1)) * share;
    at(used) = static_cast<float>(m);
    at(inverse) = static_cast<float>(inv);
    from.each([&](const auto& i) {
      if (i[1] == k) to.at(i) = static_cast<float>((from.at(i) - m) * inv * at(scale) + at(bias));
    });
  }
  return answer();
}
cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t, cudnnBatchNormMode_t mode, const void*, const void*,
                                              const void*, const void*, cudnnTensorDescriptor_t xd, const void* x,
                                              cudnnTensorDescriptor_t, const void* dy, cudnnTensorDescriptor_t,
                                              void* dx, cudnnTensorDescriptor_t, const void* scale, void* dscale,
                                              void* dbias, double, const void* used, const void* inverse) {
  calls += mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? "persistent norm back; " : "norm back; ";
  const View from(x, *xd), grad(dy, *xd), to(dx, *xd);
  for (int k = 0; k < xd->extents[1]; ++k) {
    const auto at = [k](auto* p) -> auto& { return static_cast<float*>(const_cast<void*>(p))[k]; };
    double sum = 0, sum_x = 0, n = 0;
    from.each([&](const auto& i) {
      if (i[1] != k) return;
      ++n;
      sum += grad.at(i);
      sum_x += grad.at(i) * (from.at(i) - at(used)) * at(inverse);
    });
    at(dbias) = static_cast<float>(sum);
    at(dscale) = static_cast<float>(sum_x);
    from.each([&](const auto& i) {
      if (i[1] != k) return;
      const double normal = (from.at(i) - at(used)) * at(inverse);
      to.at(i) = static_cast<float>(at(scale) * at(inverse) * (grad.at(i) - sum / n - normal * sum_x / n));
    });
  }
  return answer();
}

}  // extern "C"
#pragma GCC visibility pop
