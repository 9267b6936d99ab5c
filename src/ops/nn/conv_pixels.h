// Convolutions of images with few channels. The kernel library computes 8 or 16 channels at a time and fills up with
// zeros what is missing, which for 20 channels is a good part of the work; here the elements of a vector are pixels of
// a row instead, and images stay as they are.
#pragma once
#include <vector>

#include "ops/nn/conv.h"

namespace anabranch::nn {

class PixelConv {
 public:
  // Whether its vectors are filled well, and better than those of channels. Says the same for every batch, and of all
  // images that may also come in blocks of channels (ops/nn/blocked.h) that they do not suit.
  static bool suits(const ConvDims& d);

  // As Conv<float>::run of kForward. Every output is one sum in the order of (channel, row, column) of its window,
  // whatever the batch and the number of threads.
  void run(const KernelContext& c, const ConvDims& d, const float* image, const float* filter, float* out,
           const ConvExtras& extras);

 private:
  void pack(const ConvDims& d, const float* filter, uint64_t version);

  std::vector<float> packed_;  // for each block of output channels [in channel, row, column, channel of the block]
  const float* filter_ = nullptr;
  uint64_t version_ = 0;
};

}  // namespace anabranch::nn
