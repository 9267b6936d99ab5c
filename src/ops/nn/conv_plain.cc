// Convolutions in plain loops, for float64: the reference that the float32 kernels are compared with.
#include <algorithm>

#include "ops/nn/conv.h"

namespace anabranch::nn {
namespace {

struct Strides {  // elements between neighbours in an image
  int64_t channel, height, width;
  Strides(bool channels_last, int64_t channels, const Pair& extents)
      : channel(channels_last ? 1 : extents[0] * extents[1]),
        height(extents[1] * (channels_last ? channels : 1)),
        width(channels_last ? channels : 1) {}
};

// fn(image offset, filter offset, output offset) for every product of one sample with output channels of one group.
template <class Fn> void each_product(const ConvDims& d, int64_t group, Fn&& fn) {
  const Window& w = d.window;
  const Strides in(d.channels_last, d.in_channels, w.in), out(d.channels_last, d.out_channels, w.out);
  const int64_t ci = d.in_per_group(), co = d.out_per_group(), taps = w.kernel[0] * w.kernel[1];
  for (int64_t o = group * co; o < (group + 1) * co; ++o) {
    for (int64_t i = 0; i < ci; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t ky = tap / w.kernel[1] * w.dilation[0] - w.before[0];
        const int64_t kx = tap % w.kernel[1] * w.dilation[1] - w.before[1];
        for (int64_t y = 0; y < w.out[0]; ++y) {
          const int64_t iy = y * w.stride[0] + ky;
          if (iy < 0 || iy >= w.in[0]) continue;
          for (int64_t x = 0; x < w.out[1]; ++x) {
            const int64_t ix = x * w.stride[1] + kx;
            if (ix < 0 || ix >= w.in[1]) continue;
            fn((group * ci + i) * in.channel + iy * in.height + ix * in.width, (o * ci + i) * taps + tap,
               o * out.channel + y * out.height + x * out.width);
          }
        }
      }
    }
  }
}

}  // namespace

template <> struct Conv<double>::Impl { ConvPass pass; };

template <> Conv<double>::Conv(ConvPass pass) : impl_(std::make_unique<Impl>(Impl{pass})) {}
template <> Conv<double>::~Conv() = default;

template <>
void Conv<double>::run(const KernelContext& c, const ConvDims& d, const double* a, const double* b, double* out,
                       const ConvExtras&) {
  const int64_t in = d.in_elems(), dst = d.out_elems();
  if (impl_->pass == ConvPass::kBackwardFilter) {  // each group owns its filters; samples are added in order
    std::fill(out, out + d.filter_elems(), 0.0);
    c.parallel_for(d.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        for (int64_t n = 0; n < d.batch; ++n) {
          each_product(d, g, [&](int64_t i, int64_t f, int64_t o) { out[f] += a[n * in + i] * b[n * dst + o]; });
        }
      }
    });
    return;
  }
  const bool forward = impl_->pass == ConvPass::kForward;
  const int64_t written = forward ? dst : in;
  c.parallel_for(d.batch, 1, [&](int64_t begin, int64_t end) {
    std::fill(out + begin * written, out + end * written, 0.0);
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t g = 0; g < d.groups; ++g) {
        if (forward) {
          each_product(d, g, [&](int64_t i, int64_t f, int64_t o) { out[n * dst + o] += a[n * in + i] * b[f]; });
        } else {
          each_product(d, g, [&](int64_t i, int64_t f, int64_t o) { out[n * in + i] += a[n * dst + o] * b[f]; });
        }
      }
    }
  });
}

}  // namespace anabranch::nn
