// Operands and window of a convolution as oneDNN descriptors. Stateless; thread-safe.
#pragma once
#include <dnnl.hpp>

#include "ops/nn/conv.h"

namespace anabranch::nn {

// For `n` samples: the layouts of our tensors, and those that the library may choose.
struct ConvLayouts {
  dnnl::memory::desc user_image, user_filter, user_result, image, filter, result;
  dnnl::memory::dims stride, dilation, before, after;
  ConvLayouts(const ConvDims& d, int64_t n);
  void keep_plain(const ConvDims& d, int64_t n);  // the library may not choose layouts
  // The library's inputs are bfloat16; `out` keeps its type.
  void round_all_but(dnnl::memory::desc ConvLayouts::*out);
};

}  // namespace anabranch::nn
