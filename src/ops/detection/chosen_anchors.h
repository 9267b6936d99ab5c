// Selects the anchors of an image to train on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/detection/anchor_targets.h"

namespace anabranch::detection {

struct AnchorRule {
  float positive, negative;
  int64_t foreground = -1, all = -1;  // limits per image; below 0: none
};

// The anchors of an image that take part and the selection among them, as indices into the lists here.
template <class T> struct ChosenAnchors {
  std::vector<int64_t> inside;  // anchor indices
  std::vector<T> anchors, truth, overlaps;
  std::vector<int64_t> truth_rows,
      best;  // rows of `truth` in GtBoxes: the nearest true box of each anchor, -1 if there is none
  std::vector<T> nearest, nearest_of_truth;
  std::vector<int64_t> foreground, background, located;  // located: anchors whose offsets are trained
  int64_t idle = 0;                                      // the first ones of `located` have weight 0
  std::vector<int8_t> label;

  void measure() {
    overlap_all(anchors, truth, &overlaps);
    const size_t n = anchors.size() / 4, truths = truth.size() / 4;
    nearest.assign(n, T(0));
    best.assign(n, -1);
    nearest_of_truth.assign(truths, T(0));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < truths; ++j) {
        const T near = overlaps[i * truths + j];
        if (best[i] < 0 || near > nearest[i]) {
          nearest[i] = near;
          best[i] = static_cast<int64_t>(j);
        }
        nearest_of_truth[j] = std::max(nearest_of_truth[j], near);
      }
    }
  }

  bool nearest_to_any(size_t i) const {
    const size_t truths = nearest_of_truth.size();
    for (size_t j = 0; j < truths; ++j) {
      if (std::abs(overlaps[i * truths + j] - nearest_of_truth[j]) < static_cast<T>(kSameOverlap)) return true;
    }
    return false;
  }

  // An anchor may be the nearest one to a true box and still be far from it. Then it is background; as in Fluid 1.8.5,
  // a row of weight 0 replaces it among the offsets.
  void choose(const AnchorRule& rule, Draw* draw) {
    for (auto* list : {&foreground, &background, &located}) list->clear();
    for (size_t i = 0; i < nearest.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      if (nearest[i] >= static_cast<T>(rule.positive) || nearest_to_any(i)) foreground.push_back(k);
      if (nearest[i] < static_cast<T>(rule.negative)) background.push_back(k);
    }
    draw->shorten(&foreground, rule.foreground);
    if (rule.all >= 0)
      draw->shorten(&background, std::max<int64_t>(0, rule.all - static_cast<int64_t>(foreground.size())));
    label.assign(nearest.size(), -1);
    for (int64_t k : foreground) label[static_cast<size_t>(k)] = 1;
    for (int64_t k : background) {
      if (label[static_cast<size_t>(k)] == 1) located.push_back(foreground[0]);
      label[static_cast<size_t>(k)] = 0;
    }
    idle = static_cast<int64_t>(located.size());
    foreground.clear();
    background.clear();
    for (size_t i = 0; i < label.size(); ++i) {
      if (label[i] == 1) foreground.push_back(static_cast<int64_t>(i));
      if (label[i] == 0) background.push_back(static_cast<int64_t>(i));
    }
    located.insert(located.end(), foreground.begin(), foreground.end());
  }
};

}  // namespace anabranch::detection
