// Boxes as four numbers: left, top, right, bottom. In boxes of pixels (not normalized) the right and bottom pixels
// belong to the box, so that it is one wider and higher than the difference of its sides.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/declare/checks.h"

namespace anabranch::detection {

inline constexpr int64_t kBoxGrain = 2048;  // boxes or pairs of boxes in a piece of work

// What a box of pixels has beyond the difference of its sides.
template <class T> T edge_of(bool normalized) { return normalized ? T(0) : T(1); }

// Of two boxes; negative sides are not told from positive ones.
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

// At run time: one level of sequences that end at the last row, none of them empty where `filled`.
inline const std::vector<int64_t>& one_level_of(const InferContext& c, std::string_view slot, bool filled) {
  const Meta& m = c.in(slot);
  AB_CHECK(m.lod && m.lod->size() == 1, InvalidArgument,
           "{} must have one level of sequences, got {}; feed a LoDTensor", slot, m.lod ? m.lod->size() : 0);
  const std::vector<int64_t>& o = m.lod->back();
  AB_CHECK(o.back() == m.shape[0], InvalidArgument, "the sequences of {} must end at its last row, got row {} of {}",
           slot, o.back(), m.shape.str());
  for (size_t i = 1; filled && i < o.size(); ++i) {
    AB_CHECK(o[i] > o[i - 1], InvalidArgument, "{} must have no empty sequence, got one at {}", slot, i - 1);
  }
  return o;
}

inline constexpr const char* kBoxesAreFixed = "boxes, matches and choices among them are constants of training";

}  // namespace anabranch::detection
