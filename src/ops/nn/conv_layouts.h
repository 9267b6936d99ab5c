// Operands and window of a convolution as oneDNN is told of them. No state; any thread.
#pragma once
#include <dnnl.hpp>

#include "ops/nn/conv.h"

namespace anabranch::nn {

// Of `n` samples: layouts in our tensors, and those that the library may choose.
struct ConvLayouts {
  dnnl::memory::desc user_image, user_filter, user_result, image, filter, result;
  dnnl::memory::dims stride, dilation, before, after;
  ConvLayouts(const ConvDims& d, int64_t n);
  // What the library takes is bfloat16, except `out`, which it computes.
  void round_all_but(dnnl::memory::desc ConvLayouts::*out);
};

}  // namespace anabranch::nn
