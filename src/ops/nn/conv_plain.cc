// Convolutions in plain loops, for float64: the reference that the float32 kernels are compared with.
#include <algorithm>

#include "ops/nn/conv.h"

namespace anabranch::nn {
namespace {

struct Strides {  // elements between neighbours in an image or volume
  int64_t channel;
  Extents axis;
  Strides(bool channels_last, int64_t channels, const Extents& e) : channel(channels_last ? 1 : volume(e)) {
    const int64_t pixel = channels_last ? channels : 1;
    axis = {e[1] * e[2] * pixel, e[2] * pixel, pixel};
  }
  int64_t at(const Extents& place) const { return place[0] * axis[0] + place[1] * axis[1] + place[2] * axis[2]; }
};

// fn(place) for the places of a volume, in the order of rows.
template <class Fn> void each_place(const Extents& e, Fn&& fn) {
  Extents at{};
  for (at[0] = 0; at[0] < e[0]; ++at[0]) {
    for (at[1] = 0; at[1] < e[1]; ++at[1]) {
      for (at[2] = 0; at[2] < e[2]; ++at[2]) fn(at);
    }
  }
}

// Along one axis: the outputs whose window has the input of this tap, padding left out.
struct Reach {
  int64_t begin, end, shift;  // input = output * stride + shift
  Reach(const Window& w, size_t d, int64_t tap) : shift(tap * w.dilation[d] - w.before[d]) {
    const int64_t s = w.stride[d];
    begin = shift < 0 ? (-shift + s - 1) / s : 0;
    end = w.in[d] > shift ? std::min(w.out[d], (w.in[d] - 1 - shift) / s + 1) : 0;
  }
};

// fn(image offset, filter offset, output offset) for every product of one sample with output channels of one group.
template <class Fn> void each_product(const ConvDims& d, int64_t group, Fn&& fn) {
  const Window& w = d.window;
  const Strides in(d.channels_last, d.in_channels, w.in), out(d.channels_last, d.out_channels, w.out);
  const int64_t ci = d.in_per_group(), co = d.out_per_group(), taps = volume(w.kernel);
  for (int64_t pair = 0; pair < co * ci; ++pair) {
    const int64_t o = group * co + pair / ci, i = pair % ci;
    int64_t filter = (o * ci + i) * taps;
    each_place(w.kernel, [&](const Extents& tap) {
      const Reach z(w, 0, tap[0]), y(w, 1, tap[1]), x(w, 2, tap[2]);
      const int64_t image = (group * ci + i) * in.channel + in.at({z.shift, y.shift, x.shift});
      for (int64_t oz = z.begin; oz < z.end; ++oz) {
        for (int64_t oy = y.begin; oy < y.end; ++oy) {
          for (int64_t ox = x.begin; ox < x.end; ++ox) {
            fn(image + in.at({oz * w.stride[0], oy * w.stride[1], ox * w.stride[2]}), filter,
               o * out.channel + out.at({oz, oy, ox}));
          }
        }
      }
      ++filter;
    });
  }
}

}  // namespace

template <> struct Conv<double>::Impl { ConvPass pass; };

template <> Conv<double>::Conv(ConvPass pass, Operand) : impl_(std::make_unique<Impl>(Impl{pass})) {}
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
