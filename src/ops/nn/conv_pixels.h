// Convolutions of images with few channels. The kernel library computes 8 or 16 channels at a time and pads with zeros,
// which for 20 channels wastes a good part of the work; here the elements of a vector are pixels of a row instead, and
// images keep their layout.
#pragma once
#include <vector>

#include "ops/nn/conv.h"

namespace anabranch::nn {

class PixelConv {
 public:
  // Whether its vectors are well filled, and better than those of channels. Independent of the batch, and true only for
  // images that do not suit blocks of channels (ops/nn/blocked.h).
  static bool suits(const ConvDims& d);

  // Like Conv<float>::run of kForward. Every output is one sum in the order (channel, row, column) of its window,
  // independent of the batch and the number of threads.
  void run(const KernelContext& c, const ConvDims& d, const float* image, const float* filter, float* out,
           const ConvExtras& extras);

 private:
  void pack(const ConvDims& d, const float* filter, uint64_t version);

  std::vector<float> packed_;  // per block of output channels [in channel, row, column, channel of the block]
  const float* filter_ = nullptr;
  uint64_t version_ = 0;
};

}  // namespace anabranch::nn
