#include "ops/nn/conv_product.h"

#include <algorithm>

#include "ops/kernels/simd.h"

namespace anabranch::nn {
bool ProductConv::suits(const ConvDims& d) {
  constexpr int64_t kLeastPixels = 64, kLeastChannels = 8;  // smaller matrices fill no tile of the product
  const Window& w = d.window;
  const bool plain = !d.channels_last && !d.blocked_input && !d.blocked_output && d.groups == 1;
  const bool pixel = volume(w.kernel) == 1 && volume(w.stride) == 1 && w.in == w.out && w.before == Extents{};
  if (!plain || !pixel) return false;
  // A product that is deeper than this is split along its depth if it is alone, and then differs in the last digits.
  const int64_t most = std::max(d.in_channels, d.out_channels), pixels = volume(w.out);
  return std::min(d.in_channels, d.out_channels) >= kLeastChannels && pixels >= std::max(kLeastPixels, most / 2 + 1);
}

void ProductConv::run(const KernelContext& c, const ConvDims& d, const float* a, const float* b, float* out,
                      const ConvExtras& extras) {
  if (pass_ == ConvPass::kBackwardFilter) return run_filter(c, d, a, b, out);
  run_images(c, d, a, b, out);
  if (!extras.epilogue) return;
  c.parallel_each(d.batch, 1, [&](int64_t n) { extras.epilogue->finish(n * d.out_elems(), (n + 1) * d.out_elems()); });
}

void ProductConv::run_images(const KernelContext& c, const ConvDims& d, const float* images, const float* filter,
                             float* out) const {
  const bool forward = pass_ == ConvPass::kForward;
  const int64_t from = forward ? d.in_channels : d.out_channels, to = forward ? d.out_channels : d.in_channels;
  const int64_t pixels = volume(d.window.out);
  const GemmDims dims{.m = to,
                      .n = pixels,
                      .k = from,
                      .trans_a = !forward,
                      .batch = d.batch,
                      .batch_stride_b = from * pixels,
                      .batch_stride_c = to * pixels};
  images_.run(c, dims, filter, images, out);
}

void ProductConv::run_filter(const KernelContext& c, const ConvDims& d, const float* images, const float* dout,
                             float* out) {
  constexpr double kChunkFlops = 4e6;  // about 50 us of one core
  constexpr int64_t kMaxChunks = 16;
  const int64_t elems = d.filter_elems();
  const auto needed = static_cast<int64_t>(static_cast<double>(d.batch) * d.flops_per_sample() / kChunkFlops);
  const int64_t most = std::clamp<int64_t>(needed, 1, kMaxChunks), step = (d.batch + most - 1) / most;
  const int64_t chunks = (d.batch + step - 1) / step;
  filters_.prepare({.m = d.out_channels, .n = d.in_channels, .k = volume(d.window.out), .trans_b = true}, chunks);
  parts_.resize(static_cast<size_t>(2 * chunks * elems));
  c.parallel_each(chunks, 1, [&](int64_t chunk) {
    float *sum = parts_.data() + 2 * chunk * elems, *one = sum + elems;
    for (int64_t n = chunk * step; n < std::min(d.batch, (chunk + 1) * step); ++n) {
      const bool first = n == chunk * step;
      filters_.run(chunk, dout + n * d.out_elems(), images + n * d.in_elems(), first ? sum : one);
      if (!first) simd::add(sum, one, sum, elems);
    }
  });
  c.parallel_for(elems, 8192, [&](int64_t begin, int64_t end) {
    std::copy(parts_.data() + begin, parts_.data() + end, out + begin);
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      simd::add(out + begin, parts_.data() + 2 * chunk * elems + begin, out + begin, end - begin);
    }
  });
}

}  // namespace anabranch::nn
