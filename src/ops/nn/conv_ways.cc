#include "ops/nn/conv_ways.h"

#include <algorithm>

#include "ops/nn/blocked.h"
#include "ops/nn/conv_pixels.h"
#include "ops/nn/conv_product.h"
#include "ops/nn/conv_rows_loops.h"

namespace anabranch::nn {
namespace {

// Work of vectors of this many elements for n elements, by the elements themselves.
double padded(int64_t n, int64_t width) {
  const int64_t whole = (n + width - 1) / width * width;
  return static_cast<double>(whole) / static_cast<double>(n);
}

// The share of the products of a window and an image that does not multiply padding.
double inside(const Window& w) {
  double share = 1;
  for (size_t k = 0; k < 3; ++k) {
    int64_t found = 0;
    for (int64_t tap = 0; tap < w.kernel[k]; ++tap) {
      for (int64_t at = 0; at < w.out[k]; ++at) {
        const int64_t from = at * w.stride[k] + tap * w.dilation[k] - w.before[k];
        if (from >= 0 && from < w.in[k]) ++found;
      }
    }
    share *= static_cast<double>(found) / static_cast<double>(w.kernel[k] * w.out[k]);
  }
  return share;
}

// Of tiles of rows and vectors of channels: the padding of the vectors, loads that few vectors do not hide, and sums
// that wait for each other where there are fewer than the processor works on at the same time.
double tile_cost(int64_t channels, int64_t lanes, int64_t rows, int64_t most) {
  constexpr int64_t kSums = 10;
  const int64_t vectors = (channels + lanes - 1) / lanes, panels = (vectors + most - 1) / most;
  int64_t time = 0;
  for (int64_t p = 0; p < panels; ++p)
    time += std::max(kSums, rows * ((p + 1) * vectors / panels - p * vectors / panels));
  const double waits = static_cast<double>(time) / static_cast<double>(rows * vectors);
  const double loads = 1 + 0.207 * static_cast<double>(most * panels) / static_cast<double>(vectors);
  return padded(channels, lanes) * loads * waits;
}

// The library fills blocks of channels with zeros, except images of a few.
double library_padding(const ConvDims& d) {
  constexpr int64_t kFirst = 3;
  return (d.in_channels <= kFirst ? 1 : padded(d.in_channels, channel_block())) *
         padded(d.out_channels, channel_block());
}

constexpr int64_t kLargeFilter = 1 << 18;  // elements: it does not stay in a cache of one core

// All times are relative to that of the products without padding at the full speed of the processor.
bool images_are_faster(ConvPass pass, const ConvDims& d) {
  constexpr int64_t kLeastDepth = 16;  // shorter loops do not pay
  const rows::Sizes sizes = rows::sizes();
  const bool forward = pass == ConvPass::kForward;
  const int64_t from = forward ? d.in_channels : d.out_channels, to = forward ? d.out_channels : d.in_channels;
  if (from < kLeastDepth) return false;
  const double rows = inside(d.window) * tile_cost(to, sizes.floats, sizes.rows, sizes.vectors);
  double other = library_padding(d);
  if (forward && PixelConv::suits(d)) {
    constexpr int64_t kPixels = 8;  // of a vector, also if it has room for more
    const int64_t unused = std::max(sizes.floats, kPixels) / kPixels;
    other = 1.1 * padded(d.window.out[2], kPixels) * static_cast<double>(unused);
  } else if (d.filter_elems() >= kLargeFilter) {
    other *= 1 + 2.0 / static_cast<double>(volume(d.window.out));  // the library reads it for each sample
  }
  return rows < other;
}

// With rows for `down` channels and vectors of `across` channels.
double filter_cost(int64_t down, int64_t across) {
  const rows::Sizes s = rows::sizes();
  const double loads = s.channels < 8 ? 1.3 : 1.12;  // of both operands, whose rows lie apart
  return loads * padded(down, s.channels) * tile_cost(across, s.floats, s.channels, s.filter_vectors);
}

bool filters_are_faster(const ConvDims& d) {
  constexpr double kLeastWork = 6e6;  // flops: otherwise the single call of the library is shorter
  constexpr double kForTwo = 2e7;     // from here on a second thread would be worth its start
  const double work = static_cast<double>(d.batch) * d.flops_per_sample();
  if (ProductConv::suits(d) || work < kLeastWork) return false;
  if (std::max(d.in_channels, d.out_channels) < rows::sizes().floats) return false;  // no vector would be full
  const double least = std::min(filter_cost(d.in_channels, d.out_channels), filter_cost(d.out_channels, d.in_channels));
  const double rows = inside(d.window) * least;
  // The library sums chunks of the batch, which are then added up.
  const auto pixels = static_cast<double>(d.batch * volume(d.window.out));
  const double chunks = std::clamp(pixels / 64, 1.0, std::min(16.0, static_cast<double>(d.batch)));
  const double sums = chunks * static_cast<double>(d.filter_elems());
  const double library =
      library_padding(d) * (chunks < 2 && work >= kForTwo ? 2 : 1.15) + chunks * (sums < 1 << 20 ? 30 : 100) / pixels;
  return rows < library;
}

}  // namespace

bool filter_rows_are_inputs(const ConvDims& d) {
  const double inputs = filter_cost(d.in_channels, d.out_channels),
               outputs = filter_cost(d.out_channels, d.in_channels);
  return inputs < outputs || (inputs == outputs && d.in_channels < d.out_channels);
}

bool rows_are_faster(ConvPass pass, const ConvDims& d) {
  // A vector must not reach into the next block: the library may have been told to use shorter ones.
  if (d.groups != 1 || d.input_last || rows::sizes().floats > channel_block()) return false;
  constexpr int64_t kMostElems = 1 << 28;  // of a sample: offsets are 32 bits
  if (std::max(d.in_elems(), d.out_elems()) > kMostElems) return false;
  return pass == ConvPass::kBackwardFilter ? filters_are_faster(d) : images_are_faster(pass, d);
}

}  // namespace anabranch::nn
