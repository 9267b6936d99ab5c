// Non-maximum suppression: of boxes that overlap by more than a threshold, the one with the highest score stays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/detection/boxes.h"
#include "ops/detection/even_odd.h"

namespace anabranch::detection {

struct NmsRule {
  float score_threshold = 0, overlap_threshold = 0, eta = 1;
  int32_t candidates = -1;  // considers only this many of the best boxes; below 0: all
  bool normalized = true;
};

// 0 for a box with its sides in the wrong order.
template <class T> T nms_area(const T* b, T edge) { return b[2] < b[0] || b[3] < b[1] ? T(0) : area(b, edge); }

// Intersection over union; NaN for two boxes without an area at the same position.
template <class T> T box_overlap(const T* a, const T* b, T edge) {
  if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return T(0);
  const T common =
      (std::min(a[2], b[2]) - std::max(a[0], b[0]) + edge) * (std::min(a[3], b[3]) - std::max(a[1], b[1]) + edge);
  return common / (nms_area(a, edge) + nms_area(b, edge) - common);
}

// As in Fluid 1.8.5: the common area of polygons that cross themselves follows the even-odd rule, and their own areas
// have signs, so the union may be smaller than the common area, or below 0.
template <class T> T polygon_overlap(const T* a, const T* b, int64_t corners) {
  const double area_a = std::abs(signed_area(a, corners)), area_b = std::abs(signed_area(b, corners));
  if (area_a == 0 || area_b == 0) return T(0);
  const Polygon of_a(a, corners), of_b(b, corners);
  const bool crossed = crosses_itself(of_a) || crosses_itself(of_b);
  const double common = crossed ? even_odd_area(of_a, of_b) : common_area(a, b, corners);
  return static_cast<T>(common > 0 ? common / (area_a + area_b - common) : 0.0);
}

// A detection: its score and the index of its box.
template <class T> struct Detection {
  T score;
  int32_t box;
  bool operator<(const Detection& o) const { return score != o.score ? score > o.score : box < o.box; }
};

// Scores and boxes of one class: element i is at scores[i * score_step] and boxes + i * box_step.
template <class T> struct ClassBoxes {
  const T *scores, *boxes;
  int64_t count, score_step, box_step, box_size;
};

// Leaves the kept boxes in `found`, best first. Of equal scores the first box goes first.
template <class T> void suppress(const ClassBoxes<T>& in, const NmsRule& rule, std::vector<Detection<T>>* found) {
  found->clear();
  const T least = static_cast<T>(rule.score_threshold), edge = edge_of<T>(rule.normalized);
  for (int64_t i = 0; i < in.count; ++i) {
    const T score = in.scores[i * in.score_step];
    if (score > least) found->push_back({score, static_cast<int32_t>(i)});
  }
  auto end = found->end();
  if (rule.candidates >= 0 && static_cast<size_t>(rule.candidates) < found->size()) {
    end = found->begin() + rule.candidates;
    std::nth_element(found->begin(), end, found->end());
  }
  std::sort(found->begin(), end);
  T threshold = static_cast<T>(rule.overlap_threshold);
  auto kept = found->begin();
  for (auto at = found->begin(); at != end; ++at) {
    const T* box = in.boxes + at->box * in.box_step;
    const auto apart = [&](const Detection<T>& other) {
      const T* b = in.boxes + other.box * in.box_step;
      return (in.box_size == 4 ? box_overlap(box, b, edge) : polygon_overlap(box, b, in.box_size / 2)) <= threshold;
    };
    if (!std::all_of(found->begin(), kept, apart)) continue;
    *kept++ = *at;
    if (rule.eta < 1 && threshold > T(0.5)) threshold *= static_cast<T>(rule.eta);
  }
  found->erase(kept, found->end());
}

}  // namespace anabranch::detection
