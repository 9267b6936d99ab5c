// Operands and window of a convolution as oneDNN is told of them. No state; any thread.
#pragma once
#include <dnnl.hpp>

#include "ops/nn/conv_dims.h"

namespace anabranch::nn {

// Of `n` samples: layouts in our tensors, and those that the library may choose.
struct ConvLayouts {
  dnnl::memory::desc user_image, user_filter, user_result, image, filter, result;
  dnnl::memory::dims stride, dilation, before, after;
  ConvLayouts(const ConvDims& d, int64_t n);
};

}  // namespace anabranch::nn
