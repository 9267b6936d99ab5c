#include "ops/math/add_channels.h"

#include <algorithm>
#include <vector>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/nn/blocked.h"

namespace anabranch::math {
namespace {

// The pixels of one block of channels of one sample lie side by side.
struct Chunks {
  int64_t width, samples, blocks, pixels;
  explicit Chunks(const Shape& images)
      : width(nn::channel_block()), samples(images[0]), blocks(images[1] / width), pixels(images[2] * images[3]) {}
  int64_t elems() const { return pixels * width; }
  template <class Fn> void each(const KernelContext& c, Fn&& fn) const {
    c.parallel_each(samples * blocks, kCheapGrain / std::max<int64_t>(1, elems()) + 1, fn);
  }
};

}  // namespace

Kernel add_channels(const KernelArgs& op) {
  return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
    const Chunks k(c[x].shape());
    const float *from = c[x].data<float>(), *numbers = c[y].data<float>();
    float* to = c[out].mutable_data<float>();
    k.each(c, [&](int64_t i) {
      float* chunk = to + i * k.elems();
      if (to != from) std::copy_n(from + i * k.elems(), k.elems(), chunk);
      simd::add_to_rows(chunk, k.width, numbers + i % k.blocks * k.width, k.pixels, k.width);
    });
  };
}

// Sums of chunks are added up in the order of the samples.
Kernel add_channels_grad(const KernelArgs& op) {
  return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
          sums = std::vector<float>()](KernelContext& c) mutable {
    const Chunks k(c[dout].shape());
    const int64_t channels = k.blocks * k.width;
    const float* from = c[dout].data<float>();
    float *to = c.needs(dx) ? c[dx].mutable_data<float>() : nullptr, *sum = nullptr;
    if (c.needs(dy)) {
      sum = c[dy].mutable_data<float>();
      sums.resize(static_cast<size_t>(k.samples * channels));
    }
    k.each(c, [&](int64_t i) {
      const float* chunk = from + i * k.elems();
      if (sum) nn::blocked::loops().sum(chunk, k.pixels, sums.data() + i * k.width);
      if (to && to != from) std::copy_n(chunk, k.elems(), to + i * k.elems());
    });
    if (!sum) return;
    std::fill_n(sum, channels, 0.0f);
    for (int64_t n = 0; n < k.samples; ++n) simd::add(sum, sums.data() + n * channels, sum, channels);
  };
}

}  // namespace anabranch::math
