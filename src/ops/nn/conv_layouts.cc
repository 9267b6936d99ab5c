#include "ops/nn/conv_layouts.h"

#include "ops/nn/blocked.h"

namespace anabranch::nn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

Tag image_tag(const ConvDims& d, bool last, bool blocked) {
  const bool flat = d.window.axes == 2;
  if (last) return flat ? Tag::nhwc : Tag::ndhwc;
  if (blocked) return channel_block() == 16 ? Tag::nChw16c : Tag::nChw8c;
  return flat ? Tag::nchw : Tag::ncdhw;
}

Tag filter_tag(const ConvDims& d) {
  const bool flat = d.window.axes == 2;
  if (d.input_last) return Tag::ohwi;
  if (d.groups == 1) return flat ? Tag::oihw : Tag::oidhw;
  return flat ? Tag::goihw : Tag::goidhw;
}

// Leading numbers, then those of the existing axes.
memory::dims dims_of(const Window& w, memory::dims front, const Extents& e) {
  front.insert(front.end(), e.begin() + static_cast<std::ptrdiff_t>(w.first()), e.end());
  return front;
}

// The trailing padding that the outputs actually use, which may be less than the attribute.
Extents used_padding(const Window& w) {
  Extents after{};
  for (size_t d = 0; d < 3; ++d) {
    after[d] = (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1 - w.in[d] - w.before[d];
  }
  return after;
}

}  // namespace

ConvLayouts::ConvLayouts(const ConvDims& d, int64_t n) {
  const Window& w = d.window;
  const auto desc = [](const memory::dims& dims, Tag tag) { return memory::desc(dims, memory::data_type::f32, tag); };
  const memory::dims images = dims_of(w, {n, d.in_channels}, w.in), results = dims_of(w, {n, d.out_channels}, w.out);
  memory::dims filters{d.out_per_group(), d.in_per_group()};
  if (d.groups > 1) filters.insert(filters.begin(), d.groups);
  filters = dims_of(w, filters, w.kernel);
  user_image = desc(images, image_tag(d, d.channels_last || d.input_last, d.blocked_input));
  user_result = desc(results, image_tag(d, d.channels_last, d.blocked_output));
  user_filter = desc(filters, filter_tag(d));
  // Images with channels last are computed in place; for others the library may choose the layout.
  image = d.channels_last ? user_image : desc(images, Tag::any);
  result = d.channels_last ? user_result : desc(results, Tag::any);
  filter = desc(filters, Tag::any);
  stride = dims_of(w, {}, w.stride);
  dilation = dims_of(w, {}, w.dilation);
  for (memory::dim& step : dilation) --step;  // elements between two of the window
  before = dims_of(w, {}, w.before);
  after = dims_of(w, {}, used_padding(w));
}

void ConvLayouts::keep_plain(const ConvDims& d, int64_t n) {
  ConvDims plain = d;
  plain.blocked_input = plain.blocked_output = false;
  const ConvLayouts all(plain, n);
  image = all.user_image;
  filter = all.user_filter;
  result = all.user_result;
}

void ConvLayouts::round_all_but(memory::desc ConvLayouts::*out) {
  for (const auto operand : {&ConvLayouts::image, &ConvLayouts::filter, &ConvLayouts::result}) {
    if (operand != out) (this->*operand).data.data_type = dnnl_bf16;
  }
}

}  // namespace anabranch::nn
