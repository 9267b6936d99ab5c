// Chooses cuDNN's algorithm for a convolution: the first one within the limits, in the order that cuDNN proposes or,
// with FLAGS_cudnn_exhaustive_search, has measured.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "open_cudnn.h"
#include "ops/device/args_library.h"

namespace anabranch::cuda {

struct ConvLimits {
  bool deterministic, timed;
  int64_t room;  // bytes of workspace, below 0: any
};

struct ConvAlgorithm {
  int number = -1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  size_t room = 0;  // bytes of workspace that it works in
};

struct ConvDescriptors {
  cudnnTensorDescriptor_t image;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnTensorDescriptor_t output;
};

// None: there is none, or none within the limits.
std::optional<ConvAlgorithm> choose_algorithm(int32_t pass, CudnnHandle& handle, const ConvDescriptors& told,
                                              const ConvLimits& limits);

// What `choose` found for the first such convolution on the device: timing takes long, and the next time another
// algorithm may seem to be the fastest.
std::optional<ConvAlgorithm> kept_choice(Process& process, int device, const device::ConvDesc& desc, bool channels_last,
                                         const ConvLimits& limits,
                                         const std::function<std::optional<ConvAlgorithm>()>& choose);

}  // namespace anabranch::cuda
