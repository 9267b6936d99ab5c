// Boxes as four numbers: left, top, right, bottom. A box in pixels (not normalized) includes its right and bottom
// pixels, so its width and height are one more than the differences of its sides.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/declare/checks.h"

namespace anabranch::detection {

inline constexpr int64_t kBoxGrain = 2048;  // boxes or pairs of boxes per parallel task

// Extra width and height of a box in pixels.
template <class T> T edge_of(bool normalized) { return normalized ? T(0) : T(1); }

// Overlap of two boxes; the sign of a side is ignored.
template <class T> T area(const T* b, T edge) { return (b[2] - b[0] + edge) * (b[3] - b[1] + edge); }

template <class T> T intersection(const T* a, const T* b, T edge) {
  const T w = std::min(a[2], b[2]) - std::max(a[0], b[0]) + edge;
  const T h = std::min(a[3], b[3]) - std::max(a[1], b[1]) + edge;
  return std::max(w, T(0)) * std::max(h, T(0));
}

// Boxes [n, 4].
inline void check_boxes(const InferContext& c, std::string_view slot) {
  check_rank(c, slot, 2, 2);
  check_shape(c, slot, Shape{kUnknown, 4});
}

// At run time: one LoD level that ends at the last row, without empty sequences if `filled`.
inline const std::vector<int64_t>& one_level_of(const InferContext& c, std::string_view slot, bool filled) {
  const Meta& m = c.in(slot);
  AB_CHECK(m.lod && m.lod->size() == 1, InvalidArgument,
           "{} must have one level of sequences, got {}; feed a LoDTensor", slot, m.lod ? m.lod->size() : 0);
  const std::vector<int64_t>& o = m.lod->back();
  AB_CHECK(o.back() == m.shape[0], InvalidArgument, "the LoD of {} must end at its last row, got row {} of {}", slot,
           o.back(), m.shape.str());
  for (size_t i = 1; filled && i < o.size(); ++i) {
    AB_CHECK(o[i] > o[i - 1], InvalidArgument, "sequences of {} must not be empty, got an empty one at {}", slot,
             i - 1);
  }
  return o;
}

inline constexpr const char* kBoxesAreFixed = "boxes, matches and selections are constants";

}  // namespace anabranch::detection
