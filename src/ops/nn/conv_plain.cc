#include "ops/nn/conv_plain.h"

#include <algorithm>

#include "ops/kernels/wide.h"

namespace anabranch::nn {
namespace {

constexpr double kGrainFlops = 4e5;

struct Strides {  // distances between neighbors in an image or volume
  int64_t channel;
  Extents axis;
  Strides(bool channels_last, int64_t channels, const Extents& e) : channel(channels_last ? 1 : volume(e)) {
    const int64_t pixel = channels_last ? channels : 1;
    axis = {e[1] * e[2] * pixel, e[2] * pixel, pixel};
  }
  int64_t at(const Extents& place) const { return place[0] * axis[0] + place[1] * axis[1] + place[2] * axis[2]; }
};

// Calls fn(index) for all points of a volume, row by row.
template <class Fn> void each_place(const Extents& e, Fn&& fn) {
  Extents at{};
  for (at[0] = 0; at[0] < e[0]; ++at[0]) {
    for (at[1] = 0; at[1] < e[1]; ++at[1]) {
      for (at[2] = 0; at[2] < e[2]; ++at[2]) fn(at);
    }
  }
}

// Along one axis: the outputs whose window contains an input for this tap, without padding.
struct Reach {
  int64_t begin, end, shift;  // input = output * stride + shift
  Reach(const Window& w, size_t d, int64_t tap) : shift(tap * w.dilation[d] - w.before[d]) {
    const int64_t s = w.stride[d];
    begin = shift < 0 ? (-shift + s - 1) / s : 0;
    end = w.in[d] > shift ? std::min(w.out[d], (w.in[d] - 1 - shift) / s + 1) : 0;
  }
};

// The products of one weight along a row: n of them, starting at these elements.
struct Run {
  int64_t image, filter, output, n;
};

// fn(run) for all products of one sample with output channels of one group.
template <class Fn> void each_run(const ConvDims& d, int64_t group, Fn&& fn) {
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
          fn(Run{image + in.at({oz * w.stride[0], oy * w.stride[1], x.begin * w.stride[2]}), filter,
                 o * out.channel + out.at({oz, oy, x.begin}), x.end - x.begin});
        }
      }
      ++filter;
    });
  }
}

// Elements from one product of a run to the next.
struct Steps {
  int64_t image, output;
  explicit Steps(const ConvDims& d)
      : image(d.window.stride[2] * (d.channels_last ? d.in_channels : 1)),
        output(d.channels_last ? d.out_channels : 1) {}
};

// to[k] += from[k] * by, where k counts strides.
template <class T> void add_run(const T* from, int64_t from_step, T by, int64_t n, int64_t to_step, T* to) {
  if (from_step == 1 && to_step == 1) {
    for (int64_t k = 0; k < n; ++k) to[k] += from[k] * by;
  } else {
    for (int64_t k = 0; k < n; ++k) to[k * to_step] += from[k * from_step] * by;
  }
}

}  // namespace

template <class T>
void plain_conv_images(const KernelContext& c, bool forward, const ConvDims& d, const T* a, const T* b, T* out,
                       const ConvEpilogue* epilogue) {
  const int64_t read = forward ? d.in_elems() : d.out_elems(), written = forward ? d.out_elems() : d.in_elems();
  const Steps step(d);
  const int64_t grain = static_cast<int64_t>(kGrainFlops / d.flops_per_sample()) + 1;
  c.parallel_for(d.batch, grain, [&](int64_t begin, int64_t end) {
    in_wide_vectors([&] {
      std::fill(out + begin * written, out + end * written, T{0});
      for (int64_t n = begin; n < end; ++n) {
        const T* from = a + n * read;
        T* to = out + n * written;
        for (int64_t g = 0; g < d.groups; ++g) {
          each_run(d, g, [=](const Run& r) {
            if (forward) {
              add_run(from + r.image, step.image, b[r.filter], r.n, step.output, to + r.output);
            } else {
              add_run(from + r.output, step.output, b[r.filter], r.n, step.image, to + r.image);
            }
          });
        }
      }
    });
    if (epilogue) epilogue->finish(begin * written, end * written);
  });
}

template void plain_conv_images(const KernelContext& c, bool forward, const ConvDims& d, const float* a, const float* b,
                                float* out, const ConvEpilogue* epilogue);

template <class T>
void plain_conv_filter(const KernelContext& c, const ConvDims& d, const T* image, const T* dout, T* dfilter) {
  const int64_t in = d.in_elems(), dst = d.out_elems();
  const Steps step(d);
  std::fill(dfilter, dfilter + d.filter_elems(), T{0});
  c.parallel_each(d.groups, 1, [&](int64_t g) {
    for (int64_t n = 0; n < d.batch; ++n) {
      each_run(d, g, [&](const Run& r) {
        const T *x = image + n * in + r.image, *y = dout + n * dst + r.output;
        for (int64_t k = 0; k < r.n; ++k) dfilter[r.filter] += x[k * step.image] * y[k * step.output];
      });
    }
  });
}

template void plain_conv_filter(const KernelContext& c, const ConvDims& d, const float* image, const float* dout,
                                float* dfilter);

template <> struct Conv<double>::Impl { ConvPass pass; };

template <> Conv<double>::Conv(ConvPass pass, Operand) : impl_(std::make_unique<Impl>(Impl{pass})) {}
template <> Conv<double>::~Conv() = default;

template <>
void Conv<double>::run(const KernelContext& c, const ConvDims& d, const double* a, const double* b, double* out,
                       const ConvExtras&) {
  if (impl_->pass != ConvPass::kBackwardFilter) {
    return plain_conv_images(c, impl_->pass == ConvPass::kForward, d, a, b, out, nullptr);
  }
  plain_conv_filter(c, d, a, b, out);
}

}  // namespace anabranch::nn
