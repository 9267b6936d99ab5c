#include "ops/nn/window.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace anabranch::nn {
namespace {

void check_pair(const char* name, const std::vector<int32_t>& v) {
  AB_CHECK(v.size() == 2 && v[0] > 0 && v[1] > 0, InvalidArgument, "{} must be two numbers above 0, got [{}]", name,
           fmt::join(v, ", "));
}

// Paddings are [height, width] or [top, bottom, left, right].
void explicit_padding(const std::vector<int32_t>& p, Window* w) {
  AB_CHECK((p.size() == 2 || p.size() == 4) && std::all_of(p.begin(), p.end(), [](int32_t x) { return x >= 0; }),
           InvalidArgument, "paddings must be two or four numbers of at least 0, got [{}]", fmt::join(p, ", "));
  const bool four = p.size() == 4;
  for (size_t d = 0; d < 2; ++d) {
    w->before[d] = p[four ? 2 * d : d];
    w->after[d] = p[four ? 2 * d + 1 : d];
  }
}

}  // namespace

void pad_same(const Pair& in, Window* w) {
  for (size_t d = 0; d < 2; ++d) {
    if (in[d] < 0) continue;
    const int64_t windows = (in[d] + w->stride[d] - 1) / w->stride[d];
    const int64_t all = std::max<int64_t>(0, (windows - 1) * w->stride[d] + w->kernel[d] - in[d]);
    w->before[d] = all / 2;
    w->after[d] = all - all / 2;
  }
}

WindowAttrs read_window_attrs(const ir::Op& op, bool with_dilations) {
  WindowAttrs a{op.attr<std::vector<int32_t>>("strides"),
                op.attr<std::vector<int32_t>>("paddings"),
                {1, 1},
                op.attr<std::string>("padding_algorithm"),
                op.attr<std::string>("data_format")};
  if (with_dilations) a.dilations = op.attr<std::vector<int32_t>>("dilations");
  return a;
}

Window resolve_window(const WindowAttrs& attrs, const Pair& in, const Pair& kernel, Rounding rounding) {
  check_pair("strides", attrs.strides);
  check_pair("dilations", attrs.dilations);
  Window w{.in = in, .kernel = kernel};
  w.stride = {attrs.strides[0], attrs.strides[1]};
  w.dilation = {attrs.dilations[0], attrs.dilations[1]};
  if (attrs.padding_algorithm == "SAME") {
    w.dilation = {1, 1};
    pad_same(in, &w);
  } else if (attrs.padding_algorithm != "VALID") {
    AB_CHECK(attrs.padding_algorithm == "EXPLICIT", InvalidArgument,
             "padding_algorithm must be EXPLICIT, SAME or VALID, got {}", attrs.padding_algorithm);
    explicit_padding(attrs.paddings, &w);
  }
  for (size_t d = 0; d < 2; ++d) {
    w.out[d] = kUnknown;
    if (in[d] < 0 || kernel[d] < 0) continue;
    const int64_t span = w.dilation[d] * (kernel[d] - 1) + 1, room = in[d] + w.before[d] + w.after[d] - span;
    AB_CHECK(room >= 0 && kernel[d] > 0, InvalidArgument,
             "a window of {} does not fit into an input of {} with padding {} and {}", span, in[d], w.before[d],
             w.after[d]);
    w.out[d] = (room + (rounding == Rounding::kCeil ? w.stride[d] - 1 : 0)) / w.stride[d] + 1;
  }
  return w;
}

}  // namespace anabranch::nn
