// The channels of images: their axis, and vectors with one number per channel.
#pragma once
#include <string>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::nn {

inline void layout_attr(OpDef& def) {
  def.attr<std::string>("data_layout", "NCHW", "NCHW or NHWC", one_of("data_layout", {"NCHW", "NHWC", "AnyLayout"}));
}

inline bool channels_last(const ir::Op& op, const char* attr = "data_layout") {
  return op.attr<std::string>(attr) == "NHWC";
}

// A tensor of at least two axes as [outer, channels, inner]; inner 1: channels last.
struct Channels {
  int64_t outer, channels, inner;
  Channels(const Shape& s, bool last) {
    const int axis = last ? s.rank() - 1 : 1;
    outer = s.numel(0, axis);
    channels = s[axis];
    inner = s.numel(axis + 1, s.rank());
  }
  int64_t per_channel() const { return outer * inner; }
};

// If given, `slot` must have `count` numbers of the dtype of `like`.
inline void check_vector(const InferContext& c, const char* slot, int64_t count, const char* like = "X") {
  if (!c.has_in(slot)) return;
  check_numel(c, slot, count);
  check_same_dtype(c, slot, like);
}

// The dtype of operands per channel or row of X: that of X, but float32 for 16-bit floats, which cannot hold sums.
inline DType dtype_of_statistics(const InferContext& c) {
  const DType dtype = c.in("X").dtype;
  return dtype_size(dtype) > 2 ? dtype : DType::kFloat32;
}

inline void check_statistics(const InferContext& c, const char* slot, int64_t count, const char* like = "X") {
  const DType dtype = c.in(like).dtype;
  if (!c.has_in(slot) || dtype_size(dtype) > 2) return check_vector(c, slot, count, like);
  check_vector(c, slot, count, slot);
  AB_CHECK(c.in(slot).dtype == DType::kFloat32, InvalidArgument, "{} must be float32 for {} of {}, got {}", slot, like,
           dtype_name(dtype), dtype_name(c.in(slot).dtype));
}

}  // namespace anabranch::nn
