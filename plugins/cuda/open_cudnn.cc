#include "open_cudnn.h"

#include "handles.h"
#include "open_library.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

Cudnn opened() {
  Cudnn t{};
  open_library({"cuDNN", "libcudnn.so.9", "nvidia/cudnn/lib", 90000}, [&t](Symbols& symbols) {
    symbols.AB_TAKE(t, cudnnGetVersion)
        .AB_TAKE(t, cudnnGetErrorString)
        .AB_TAKE(t, cudnnCreate)
        .AB_TAKE(t, cudnnDestroy)
        .AB_TAKE(t, cudnnSetStream)
        .AB_TAKE(t, cudnnCreateTensorDescriptor)
        .AB_TAKE(t, cudnnSetTensorNdDescriptor)
        .AB_TAKE(t, cudnnDestroyTensorDescriptor)
        .AB_TAKE(t, cudnnCreateFilterDescriptor)
        .AB_TAKE(t, cudnnSetFilterNdDescriptor)
        .AB_TAKE(t, cudnnDestroyFilterDescriptor)
        .AB_TAKE(t, cudnnCreateConvolutionDescriptor)
        .AB_TAKE(t, cudnnSetConvolutionNdDescriptor)
        .AB_TAKE(t, cudnnSetConvolutionGroupCount)
        .AB_TAKE(t, cudnnSetConvolutionMathType)
        .AB_TAKE(t, cudnnDestroyConvolutionDescriptor)
        .AB_TAKE(t, cudnnGetConvolutionForwardAlgorithm_v7)
        .AB_TAKE(t, cudnnFindConvolutionForwardAlgorithm)
        .AB_TAKE(t, cudnnGetConvolutionBackwardDataAlgorithm_v7)
        .AB_TAKE(t, cudnnFindConvolutionBackwardDataAlgorithm)
        .AB_TAKE(t, cudnnGetConvolutionBackwardFilterAlgorithm_v7)
        .AB_TAKE(t, cudnnFindConvolutionBackwardFilterAlgorithm)
        .AB_TAKE(t, cudnnConvolutionForward)
        .AB_TAKE(t, cudnnConvolutionBackwardData)
        .AB_TAKE(t, cudnnConvolutionBackwardFilter)
        .AB_TAKE(t, cudnnBatchNormalizationForwardTraining)
        .AB_TAKE(t, cudnnBatchNormalizationBackward);
    return [&t] { return static_cast<int>(t.cudnnGetVersion()); };
  });
  return t;
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn table = opened();  // tried again by the next call after a failure
  return table;
}

CudnnHandle::CudnnHandle(int device) { well(cudnn().cudnnCreate(&handle_), "opening device ", device); }

cudnnStatus_t CudnnHandle::set_stream(const ab_queue& queue) { return cudnn().cudnnSetStream(handle_, queue.stream); }

void CudnnHandle::failed(const ab_queue& queue, const char* doing, cudnnStatus_t status) {
  library_failed(queue, status_of(status), said(doing, ": cuDNN: ", cudnn().cudnnGetErrorString(status)));
}

std::shared_ptr<CudnnHandle> cudnn_handle(Process& process, int device) {
  const std::shared_ptr<void> handle = process.kept("cuDNN", device, [device]() -> std::shared_ptr<void> {
    use_device(device);
    return std::make_shared<CudnnHandle>(device);
  });
  return std::static_pointer_cast<CudnnHandle>(handle);
}

ab_status status_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return AB_RESOURCE_EXHAUSTED;
  }
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case 1000: return AB_UNAVAILABLE;  // it cannot be used as it is installed
    case CUDNN_STATUS_NOT_SUPPORTED: return AB_UNSUPPORTED;
    default: return AB_INTERNAL;
  }
}

TensorDescriptor describe_tensor(cudnnDataType_t type, const std::vector<int>& extents,
                                 const std::vector<int>& strides) {
  cudnnTensorDescriptor_t made = nullptr;
  well(cudnn().cudnnCreateTensorDescriptor(&made), "describing a tensor");
  TensorDescriptor tensor(made, cudnn().cudnnDestroyTensorDescriptor);
  well(cudnn().cudnnSetTensorNdDescriptor(made, type, static_cast<int>(extents.size()), extents.data(), strides.data()),
       "describing a tensor");
  return tensor;
}

CudnnTypes cudnn_types(const char* key, int32_t dtype) {
  switch (dtype) {
    case AB_FLOAT32: return {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 4, 4};
    case AB_FLOAT64: return {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, 8, 8};
    case AB_FLOAT16: return {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, 2, 4};
    case AB_BFLOAT16: return {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, 2, 4};
    default: fail(AB_UNSUPPORTED, key, ": element type ", dtype, " is not supported");
  }
}

const void* cudnn_scale(const CudnnTypes& types, bool one) {
  static constexpr float kNarrow[] = {0, 1};
  static constexpr double kWide[] = {0, 1};
  if (types.wide == CUDNN_DATA_DOUBLE) return &kWide[one];
  return &kNarrow[one];
}

}  // namespace anabranch::cuda
