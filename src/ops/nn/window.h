// The two spatial axes of a convolution or a pool: attributes checked, padding resolved, output extents computed. An
// extent that is not known yet gives an unknown output extent.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "opdef/infer_context.h"

namespace anabranch::nn {

using Pair = std::array<int64_t, 2>;  // height, width

enum class Rounding { kFloor, kCeil };

struct Window {
  Pair in{}, out{}, kernel{}, stride{1, 1}, dilation{1, 1}, before{}, after{};
  bool operator==(const Window&) const = default;
};

// What the attributes of an op say.
struct WindowAttrs {
  std::vector<int32_t> strides, paddings, dilations;
  std::string padding_algorithm, data_format;
  bool channels_last() const { return data_format == "NHWC"; }
};

WindowAttrs read_window_attrs(const ir::Op& op, bool with_dilations);

// Axes of a rank 4 tensor in either layout.
struct ImageAxes {
  int channel, height, width;
  explicit ImageAxes(bool channels_last)
      : channel(channels_last ? 3 : 1), height(channels_last ? 1 : 2), width(channels_last ? 2 : 3) {}
};

// Padding with which as many windows as strides fit into these extents; the odd element goes behind.
void pad_same(const Pair& in, Window* w);

Window resolve_window(const WindowAttrs& attrs, const Pair& in, const Pair& kernel, Rounding rounding);

// Dims of one op, computed again only when the shapes change: in a steady step nothing is parsed.
template <class Dims, class Compute> class DimsOf {
 public:
  DimsOf(const ir::Op& op, Compute compute) : op_(op), compute_(compute) {}
  template <class... Shapes> const Dims& operator()(const Shapes&... shapes) {
    const std::array<Shape, sizeof...(Shapes)> now{shapes...};
    if (!valid_ || !std::equal(now.begin(), now.end(), seen_.begin())) {
      dims_ = compute_(op_, shapes...);
      std::copy(now.begin(), now.end(), seen_.begin());
      valid_ = true;
    }
    return dims_;
  }

 private:
  ir::Op op_;
  Compute compute_;
  Dims dims_;
  std::array<Shape, 2> seen_;
  bool valid_ = false;
};

}  // namespace anabranch::nn
