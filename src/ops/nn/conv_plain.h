// Convolutions in plain loops along the rows of images: for float64, the reference for the float32 kernels, and for
// float32 if images have too few channels for the library, which fills its vectors with them, or if a negative padding
// crops images, which the library does not support.
#pragma once
#include "ops/nn/conv.h"

namespace anabranch::nn {

// kForward or kBackwardData (see Conv::run); samples are computed in parallel, each in a fixed order.
template <class T>
void plain_conv_images(const KernelContext& c, bool forward, const ConvDims& d, const T* a, const T* b, T* out,
                       const ConvEpilogue* epilogue);

// kBackwardFilter: each group has separate filters; samples are added in order.
template <class T>
void plain_conv_filter(const KernelContext& c, const ConvDims& d, const T* image, const T* dout, T* dfilter);

// Whether these loops are faster than the library's: for rows as long as a few vectors, and fewer channels than half of
// one.
inline bool plain_is_faster(const ConvDims& d) {
  constexpr int64_t kFewChannels = 8, kLongRow = 16;
  return !d.channels_last && !d.blocked_input && !d.blocked_output && d.in_channels < kFewChannels &&
         d.out_channels < kFewChannels && d.window.stride[2] == 1 && d.window.out[2] >= kLongRow;
}

extern template void plain_conv_images(const KernelContext& c, bool forward, const ConvDims& d, const float* a,
                                       const float* b, float* out, const ConvEpilogue* epilogue);
extern template void plain_conv_filter(const KernelContext& c, const ConvDims& d, const float* image, const float* dout,
                                       float* dfilter);

}  // namespace anabranch::nn
