// cuDNN, opened at first use. The plug-in uses its interface with descriptors of single layers, which all of cuDNN 9
// has.
#pragma once
#include <cudnn.h>

#include <memory>
#include <mutex>
#include <vector>

#include "library_call.h"

namespace anabranch::cuda {

struct Cudnn {
  decltype(&::cudnnGetVersion) cudnnGetVersion;
  decltype(&::cudnnGetErrorString) cudnnGetErrorString;
  decltype(&::cudnnCreate) cudnnCreate;
  decltype(&::cudnnDestroy) cudnnDestroy;
  decltype(&::cudnnSetStream) cudnnSetStream;
  decltype(&::cudnnCreateTensorDescriptor) cudnnCreateTensorDescriptor;
  decltype(&::cudnnSetTensorNdDescriptor) cudnnSetTensorNdDescriptor;
  decltype(&::cudnnDestroyTensorDescriptor) cudnnDestroyTensorDescriptor;
  decltype(&::cudnnCreateFilterDescriptor) cudnnCreateFilterDescriptor;
  decltype(&::cudnnSetFilterNdDescriptor) cudnnSetFilterNdDescriptor;
  decltype(&::cudnnDestroyFilterDescriptor) cudnnDestroyFilterDescriptor;
  decltype(&::cudnnCreateConvolutionDescriptor) cudnnCreateConvolutionDescriptor;
  decltype(&::cudnnSetConvolutionNdDescriptor) cudnnSetConvolutionNdDescriptor;
  decltype(&::cudnnSetConvolutionGroupCount) cudnnSetConvolutionGroupCount;
  decltype(&::cudnnSetConvolutionMathType) cudnnSetConvolutionMathType;
  decltype(&::cudnnDestroyConvolutionDescriptor) cudnnDestroyConvolutionDescriptor;
  decltype(&::cudnnGetConvolutionForwardAlgorithm_v7) cudnnGetConvolutionForwardAlgorithm_v7;
  decltype(&::cudnnFindConvolutionForwardAlgorithm) cudnnFindConvolutionForwardAlgorithm;
  decltype(&::cudnnGetConvolutionBackwardDataAlgorithm_v7) cudnnGetConvolutionBackwardDataAlgorithm_v7;
  decltype(&::cudnnFindConvolutionBackwardDataAlgorithm) cudnnFindConvolutionBackwardDataAlgorithm;
  decltype(&::cudnnGetConvolutionBackwardFilterAlgorithm_v7) cudnnGetConvolutionBackwardFilterAlgorithm_v7;
  decltype(&::cudnnFindConvolutionBackwardFilterAlgorithm) cudnnFindConvolutionBackwardFilterAlgorithm;
  decltype(&::cudnnConvolutionForward) cudnnConvolutionForward;
  decltype(&::cudnnConvolutionBackwardData) cudnnConvolutionBackwardData;
  decltype(&::cudnnConvolutionBackwardFilter) cudnnConvolutionBackwardFilter;
  decltype(&::cudnnBatchNormalizationForwardTraining) cudnnBatchNormalizationForwardTraining;
  decltype(&::cudnnBatchNormalizationBackward) cudnnBatchNormalizationBackward;
};

const Cudnn& cudnn();  // Unavailable if it is not installed

// One per device. It enqueues work into the queue that was set last, so its caller holds the lock.
class CudnnHandle {
 public:
  explicit CudnnHandle(int device);
  ~CudnnHandle() { (void)cudnn().cudnnDestroy(handle_); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  // fn(handle) returns a status. `doing` is for errors.
  template <class Fn> void put(const ab_queue& queue, const char* doing, Fn&& fn) {
    const std::lock_guard lock(mutex_);
    cudnnStatus_t status = set_stream(queue);
    if (status == CUDNN_STATUS_SUCCESS) status = fn(handle_);
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
      failed(queue, doing, status);
  }
  template <class Fn> cudnnStatus_t ask(Fn&& fn) {  // enqueues nothing
    const std::lock_guard lock(mutex_);
    return fn(handle_);
  }

 private:
  cudnnStatus_t set_stream(const ab_queue& queue);
  [[noreturn]] static void failed(const ab_queue& queue, const char* doing, cudnnStatus_t status);

  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
};

std::shared_ptr<CudnnHandle> cudnn_handle(Process& process, int device);

ab_status status_of(cudnnStatus_t status);

// For calls that enqueue nothing.
template <class... Doing> void well(cudnnStatus_t status, const Doing&... doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail(status_of(status), doing..., ": cuDNN: ", cudnn().cudnnGetErrorString(status));
}

template <class T> using CudnnOwned = std::unique_ptr<T, cudnnStatus_t (*)(T*)>;
using TensorDescriptor = CudnnOwned<cudnnTensorStruct>;

TensorDescriptor describe_tensor(cudnnDataType_t type, const std::vector<int>& extents,
                                 const std::vector<int>& strides);

// Element types of a call: of tensors, and of scales, sums and per-channel values.
struct CudnnTypes {
  cudnnDataType_t data, wide;
  size_t bytes, wide_bytes;
};
CudnnTypes cudnn_types(const char* key, int32_t dtype);

// The number 1 or 0 in the form of cuDNN's scale arguments.
const void* cudnn_scale(const CudnnTypes& types, bool one);

}  // namespace anabranch::cuda
