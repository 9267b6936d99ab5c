// Attributes shared by convolutions, transposed convolutions and pools.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::nn {

inline void window_attrs(OpDef& def) {
  def.attr<std::vector<int32_t>>("strides", {1, 1}, "strides of the window: height, width")
      .attr<std::vector<int32_t>>("paddings", {0, 0}, "[height, width] or [top, bottom, left, right]")
      .attr<std::string>("padding_algorithm", "EXPLICIT", "EXPLICIT, SAME or VALID")
      .attr<std::string>("data_format", "NCHW", "NCHW or NHWC", one_of("data_format", {"NCHW", "NHWC", "AnyLayout"}));
}

// For volumes. Fluid writes their layouts with or without the D.
inline std::function<void(OpDef&)> volume_attrs(const char* layout) {
  return [layout](OpDef& def) {
    def.attr<std::vector<int32_t>>("strides", {1, 1, 1}, "strides of the window: depth, height, width")
        .attr<std::vector<int32_t>>("paddings", {0, 0, 0},
                                    "[depth, height, width], or leading and trailing padding of each")
        .attr<std::string>("padding_algorithm", "EXPLICIT", "EXPLICIT, SAME or VALID")
        .attr<std::string>("data_format", layout, "NCDHW or NDHWC, also written NCHW and NHWC",
                           one_of("data_format", {"NCDHW", "NDHWC", "NCHW", "NHWC", "AnyLayout"}));
  };
}

}  // namespace anabranch::nn
