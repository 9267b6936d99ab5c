#include "ops/nn/conv_pixels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv_pixels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "opdef/fused_ops.h"
#include "ops/kernels/workspace.h"
#include "ops/nn/blocked.h"

#ifndef AB_CONV_PIXELS_ONCE
#define AB_CONV_PIXELS_ONCE
namespace anabranch::nn {
namespace {

constexpr int64_t kLanes = 8;  // pixels in a vector; fewer for shorter vectors
constexpr int64_t kBlock = 6;  // maximum number of output channels at a time

// One sample, in the form that the loops read.
struct PixelJob {
  const float* image;                    // the first input element of the first output of the first channel
  int64_t channels, height, width;       // of a window
  int64_t plane, row_step, column_step;  // distances between channels, rows and columns of the window, in elements
  int64_t down;                          // distance between rows of outputs in the image, in elements
  int64_t out_height, out_width;
};

}  // namespace
}  // namespace anabranch::nn
#endif

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Several vectors of pixels at a time: their sums, for all channels of a block, stay in registers.
constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// V vectors of pixels from the `first` one on, of O channels.
template <int O, int V>
HWY_INLINE void tile(const PixelJob& j, const float* HWY_RESTRICT weights, int64_t first, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kLanes> d;
  using Vec = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t across = (j.out_width + lanes - 1) / lanes, pixels = j.out_height * j.out_width;
  const float* from[V];
  for (int v = 0; v < V; ++v) from[v] = j.image + (first + v) / across * j.down + (first + v) % across * lanes;
  Vec sums[O][V];
  for (auto& row : sums) {
    for (Vec& sum : row) sum = hn::Zero(d);
  }
  for (int64_t i = 0; i < j.channels; ++i) {
    for (int64_t y = 0; y < j.height; ++y) {
      int64_t at = i * j.plane + y * j.row_step;
      for (int64_t x = 0; x < j.width; ++x, at += j.column_step, weights += O) {
        Vec in[V];
        for (int v = 0; v < V; ++v) in[v] = hn::LoadU(d, from[v] + at);
        for (int o = 0; o < O; ++o) {
          const Vec weight = hn::Set(d, weights[o]);
          for (int v = 0; v < V; ++v) sums[o][v] = hn::MulAdd(weight, in[v], sums[o][v]);
        }
      }
    }
  }
  for (int v = 0; v < V; ++v) {
    const int64_t x = (first + v) % across * lanes, left = j.out_width - x;
    float* to = out + (first + v) / across * j.out_width + x;
    for (int o = 0; o < O; ++o, to += pixels) {
      if (left >= lanes) {
        hn::StoreU(sums[o][v], d, to);
      } else {
        HWY_ALIGN float whole[kLanes];
        hn::Store(sums[o][v], d, whole);
        std::copy(whole, whole + left, to);
      }
    }
  }
}

template <int O> void channels(const PixelJob& j, const float* weights, float* out) {
  const hn::CappedTag<float, kLanes> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t vectors = (j.out_width + lanes - 1) / lanes * j.out_height;
  int64_t at = 0;
  for (; at + kVectors <= vectors; at += kVectors) tile<O, kVectors>(j, weights, at, out);
  for (; at + 2 <= vectors; at += 2) tile<O, 2>(j, weights, at, out);
  if (at < vectors) tile<O, 1>(j, weights, at, out);
}

void ConvPixels(const PixelJob& j, const float* weights, int64_t count, float* out) {
  switch (count) {
    case 1: return channels<1>(j, weights, out);
    case 2: return channels<2>(j, weights, out);
    case 3: return channels<3>(j, weights, out);
    case 4: return channels<4>(j, weights, out);
    case 5: return channels<5>(j, weights, out);
    default: return channels<6>(j, weights, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn {
namespace {
HWY_EXPORT(ConvPixels);

constexpr int64_t kMostChannels = 64;
constexpr double kGrainFlops = 2e6;  // about 25 us of one core

int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// The fraction of vectors of this many elements that n elements fill.
double filled(int64_t n, int64_t width) { return static_cast<double>(n) / static_cast<double>(rounded_up(n, width)); }

// Output channels are divided evenly: a last block of few channels would leave the processor waiting.
struct Blocks {
  int64_t channels, count;
  explicit Blocks(const ConvDims& d) : channels(d.out_channels), count((channels + kBlock - 1) / kBlock) {}
  int64_t begin(int64_t block) const { return block * channels / count; }
  int64_t size(int64_t block) const { return begin(block + 1) - begin(block); }
};

// The images in the form that the loops read: with zero padding, and so that whole vectors can be read.
struct Frame {
  int64_t height, width;
  bool copied;
  explicit Frame(const ConvDims& d)
      : height((d.window.out[1] - 1) * d.window.stride[1] + (d.window.kernel[1] - 1) * d.window.dilation[1] + 1),
        width(d.window.out[2] + (d.window.kernel[2] - 1) * d.window.dilation[2]),
        copied(d.window.before[1] > 0 || d.window.before[2] > 0 || height > d.window.in[1] || width > d.window.in[2] ||
               d.window.out[2] % kLanes != 0) {
    if (!copied) {
      height = d.window.in[1];
      width = d.window.in[2];
    }
  }
  int64_t plane() const { return height * width; }
  int64_t elems(const ConvDims& d) const { return d.in_channels * plane() + kLanes; }
  void copy(const ConvDims& d, const float* image, float* to) const {
    const Window& w = d.window;
    std::fill_n(to, elems(d), 0.0f);
    const int64_t rows = std::min(w.in[1], height - w.before[1]), columns = std::min(w.in[2], width - w.before[2]);
    for (int64_t i = 0; i < d.in_channels; ++i) {
      for (int64_t y = 0; y < rows; ++y) {
        std::copy_n(image + (i * w.in[1] + y) * w.in[2], columns,
                    to + i * plane() + (y + w.before[1]) * width + w.before[2]);
      }
    }
  }
};

PixelJob job_of(const ConvDims& d, const Frame& frame) {
  const Window& w = d.window;
  return {.image = nullptr,
          .channels = d.in_channels,
          .height = w.kernel[1],
          .width = w.kernel[2],
          .plane = frame.plane(),
          .row_step = w.dilation[1] * frame.width,
          .column_step = w.dilation[2],
          .down = w.stride[1] * frame.width,
          .out_height = w.out[1],
          .out_width = w.out[2]};
}

}  // namespace

bool PixelConv::suits(const ConvDims& d) {
  const Window& w = d.window;
  const bool plain = w.axes == 2 && d.groups == 1 && !d.channels_last && w.stride[2] == 1;
  const bool few = d.in_channels <= kMostChannels && d.out_channels <= kMostChannels;
  const bool blocks = d.in_channels % fused::kMostInBlock == 0 || d.out_channels % fused::kMostInBlock == 0;
  if (!plain || !few || blocks) return false;
  constexpr int64_t kFirst = 3;  // the library does not pad images of up to this many channels
  const double inputs = d.in_channels <= kFirst ? 1 : filled(d.in_channels, channel_block());
  return filled(w.out[2], kLanes) > inputs * filled(d.out_channels, channel_block());
}

void PixelConv::pack(const ConvDims& d, const float* filter, uint64_t version) {
  const auto elems = static_cast<size_t>(d.filter_elems());
  if (version != 0 && version == version_ && filter == filter_ && packed_.size() == elems) return;
  version_ = version;
  filter_ = filter;
  packed_.resize(elems);
  const Blocks blocks(d);
  const int64_t taps = d.filter_elems() / d.out_channels;
  float* to = packed_.data();
  for (int64_t b = 0; b < blocks.count; ++b) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t o = blocks.begin(b); o < blocks.begin(b + 1); ++o) *to++ = filter[o * taps + tap];
    }
  }
}

void PixelConv::run(const KernelContext& c, const ConvDims& d, const float* image, const float* filter, float* out,
                    const ConvExtras& extras) {
  pack(d, filter, extras.filter_version);
  const Blocks blocks(d);
  const Frame frame(d);
  const int64_t taps = d.filter_elems() / d.out_channels, pixels = volume(d.window.out);
  const double work = d.flops_per_sample() / static_cast<double>(blocks.count);
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(kGrainFlops / work));
  c.parallel_for(d.batch * blocks.count, grain, [&](int64_t begin, int64_t end) {
    Workspace room;
    float* copy = frame.copied ? room.get<float>(frame.elems(d)) : nullptr;
    PixelJob job = job_of(d, frame);
    for (int64_t at = begin, sample = -1; at < end; ++at) {
      const int64_t block = at % blocks.count, channel = blocks.begin(block);
      if (sample != at / blocks.count) {
        sample = at / blocks.count;
        const float* from = image + sample * d.in_elems();
        if (copy) frame.copy(d, from, copy);
        job.image = copy ? copy : from;
      }
      const int64_t first = sample * d.out_elems() + channel * pixels, count = blocks.size(block);
      HWY_DYNAMIC_DISPATCH(ConvPixels)(job, packed_.data() + channel * taps, count, out + first);
      if (extras.epilogue) extras.epilogue->finish(first, first + count * pixels);
    }
  });
}

}  // namespace anabranch::nn
#endif
