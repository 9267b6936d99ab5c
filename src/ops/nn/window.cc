#include "ops/nn/window.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ops/kernels/window_count.h"

namespace anabranch::nn {
namespace {

// Paddings are [height, width] or [top, bottom, left, right]; volumes have depth, or front and back, first. Negative
// ones crop, as in Fluid 1.8.5.
void explicit_padding(const std::vector<int32_t>& p, Window* w) {
  const auto axes = static_cast<size_t>(w->axes);
  AB_CHECK(p.size() == axes || p.size() == 2 * axes, InvalidArgument, "paddings must be {} numbers, got [{}]",
           axes == 2 ? "two or four" : "three or six", fmt::join(p, ", "));
  const bool both = p.size() == 2 * axes;
  for (size_t k = 0; k < axes; ++k) {
    w->before[w->first() + k] = p[both ? 2 * k : k];
    w->after[w->first() + k] = p[both ? 2 * k + 1 : k];
  }
}

}  // namespace

Extents extents_of(const Shape& s, int first, int axes) {
  Extents e{1, 1, 1};
  const int unused = 3 - axes;
  for (int d = unused; d < 3; ++d) e[static_cast<size_t>(d)] = s[first + d - unused];
  return e;
}

Shape image_shape(int64_t batch, int64_t channels, const Extents& e, int axes, bool channels_last) {
  Shape s{batch};
  if (!channels_last) s.push_back(channels);
  for (size_t d = static_cast<size_t>(3 - axes); d < 3; ++d) s.push_back(e[d]);
  if (channels_last) s.push_back(channels);
  return s;
}

Extents positive_extents(const char* name, const std::vector<int32_t>& v, int axes) {
  const bool fits =
      v.size() == static_cast<size_t>(axes) && std::all_of(v.begin(), v.end(), [](int32_t x) { return x > 0; });
  AB_CHECK(fits, InvalidArgument, "{} must be {} numbers above 0, got [{}]", name, axes == 2 ? "two" : "three",
           fmt::join(v, ", "));
  Extents e{1, 1, 1};
  std::copy_backward(v.begin(), v.end(), e.end());
  return e;
}

void pad_same(const Extents& in, Window* w) {
  for (size_t d = w->first(); d < 3; ++d) {
    if (in[d] < 0) continue;
    const int64_t windows = (in[d] + w->stride[d] - 1) / w->stride[d];
    const int64_t all = std::max<int64_t>(0, (windows - 1) * w->stride[d] + w->kernel[d] - in[d]);
    w->before[d] = all / 2;
    w->after[d] = all - all / 2;
  }
}

WindowAttrs read_window_attrs(const ir::Op& op, int axes, bool with_dilations) {
  WindowAttrs a{axes,
                op.attr<std::vector<int32_t>>("strides"),
                op.attr<std::vector<int32_t>>("paddings"),
                std::vector<int32_t>(static_cast<size_t>(axes), 1),
                op.attr<std::string>("padding_algorithm"),
                op.attr<std::string>("data_format")};
  if (with_dilations) a.dilations = op.attr<std::vector<int32_t>>("dilations");
  return a;
}

Window resolve_window(const WindowAttrs& attrs, const Extents& in, const Extents& kernel, Rounding rounding) {
  Window w{.axes = attrs.axes, .in = in, .kernel = kernel};
  w.stride = positive_extents("strides", attrs.strides, attrs.axes);
  w.dilation = positive_extents("dilations", attrs.dilations, attrs.axes);
  if (attrs.padding_algorithm == "SAME") {
    w.dilation = {1, 1, 1};
    pad_same(in, &w);
  } else if (attrs.padding_algorithm != "VALID") {
    AB_CHECK(attrs.padding_algorithm == "EXPLICIT", InvalidArgument,
             "padding_algorithm must be EXPLICIT, SAME or VALID, got {}", attrs.padding_algorithm);
    explicit_padding(attrs.paddings, &w);
  }
  for (size_t d = w.first(); d < 3; ++d) {
    w.out[d] = kUnknown;
    if (in[d] < 0 || kernel[d] < 0) continue;
    const int64_t span = w.dilation[d] * (kernel[d] - 1) + 1;
    AB_CHECK(kernel[d] > 0, InvalidArgument, "the window must have elements, got {}", kernel[d]);
    w.out[d] = window_count(span, w.stride[d], in[d], w.before[d], w.after[d], rounding == Rounding::kCeil);
  }
  return w;
}

}  // namespace anabranch::nn
