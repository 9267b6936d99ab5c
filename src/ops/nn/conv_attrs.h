// Attributes that convolutions and their transposes declare alike.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "opdef/op_def.h"

namespace anabranch::nn {

inline void check_layout(const std::string& v) {
  AB_CHECK(v == "NCHW" || v == "NHWC" || v == "AnyLayout", InvalidArgument, "data_format is {}, expected NCHW or NHWC",
           v);
}

inline OpDef& declare_window_attrs(OpDef& def) {
  return def.attr<std::vector<int32_t>>("strides", {1, 1}, "steps of the window: height, width")
      .attr<std::vector<int32_t>>("paddings", {0, 0}, "[height, width] or [top, bottom, left, right]")
      .attr<std::string>("padding_algorithm", "EXPLICIT", "EXPLICIT, SAME or VALID")
      .attr<std::string>("data_format", "NCHW", "NCHW or NHWC", check_layout);
}

// Numbers that a fused form would change are never left out in silence.
inline std::function<void(const bool&)> refuse_fusion(const char* op) {
  return [op](const bool& v) { AB_CHECK(!v, Unsupported, "fused forms are not offered: append an op {} instead", op); };
}

inline OpDef& declare_fusion_attrs(OpDef& def) {
  return def.attr<bool>("use_cudnn", true, "accepted, without effect")
      .attr<bool>("use_mkldnn", false, "accepted, without effect")
      .attr<bool>("is_test", false, "accepted, without effect")
      .attr<bool>("fuse_relu", false, "not offered", refuse_fusion("relu"))
      .attr<std::string>(
          "fuse_activation", "", "not offered",
          [](const std::string& v) { AB_CHECK(v.empty(), Unsupported, "fuse_activation: append an op {} instead", v); })
      .attr<float>("fuse_alpha", 0.0f, "of fuse_activation")
      .attr<float>("fuse_beta", 0.0f, "of fuse_activation")
      .attr<int32_t>("workspace_size_MB", 512, "accepted, without effect");
}

}  // namespace anabranch::nn
