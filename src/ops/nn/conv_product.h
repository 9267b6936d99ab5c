// Convolutions with a window of one pixel as products of the filter and each image, both as they lie in memory: the
// library's convolutions would first convert plain images to blocks of channels.
#pragma once
#include <vector>

#include "ops/kernels/gemm.h"
#include "ops/nn/conv.h"

namespace anabranch::nn {

class ProductConv {
 public:
  explicit ProductConv(ConvPass pass) : pass_(pass) {}

  // Independent of the batch.
  static bool suits(const ConvDims& d);

  // Like Conv<float>::run. The result for an image does not depend on the batch; gradients of the filter are added up
  // in the order of the images, in chunks that depend only on the extents.
  void run(const KernelContext& c, const ConvDims& d, const float* a, const float* b, float* out,
           const ConvExtras& extras);

 private:
  void run_images(const KernelContext& c, const ConvDims& d, const float* images, const float* filter,
                  float* out) const;
  void run_filter(const KernelContext& c, const ConvDims& d, const float* images, const float* dout, float* out);

  ConvPass pass_;
  mutable Gemm<float> images_;
  TaskGemm filters_;
  std::vector<float> parts_;  // per chunk: its sum, and the gradient of one image
};

}  // namespace anabranch::nn
