// Matches detections with true boxes and computes average precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/detection/nms.h"

namespace anabranch::detection {

// A detection of a class, and whether it is the first to find a true box.
template <class T> struct Judged {
  T score;
  bool right, wrong;
};

template <class T> struct Counts {
  std::vector<int64_t> boxes;                 // number of true boxes of each class
  std::vector<std::vector<Judged<T>>> found;  // of each class, image by image
};

// One image.
template <class T> struct Scene {
  const T *detections, *labels;
  int64_t found, truths, width;  // width of a label: 6 with `difficult` after the class, 5 without
  int64_t label(int64_t t) const { return static_cast<int64_t>(labels[t * width]); }
  bool difficult(int64_t t) const { return width == 6 && std::abs(labels[t * width + 1]) >= static_cast<T>(1e-6); }
  const T* box(int64_t t) const { return labels + t * width + width - 4; }
};

template <class T> class Judge {
 public:
  explicit Judge(const KernelArgs& op)
      : classes_(op.attr<int32_t>("class_num")),
        threshold_(static_cast<T>(op.attr<float>("overlap_threshold"))),
        difficult_(op.attr<bool>("evaluate_difficult")) {}

  void begin(Counts<T>* counts) const {
    counts->boxes.assign(static_cast<size_t>(classes_), 0);
    counts->found.resize(static_cast<size_t>(classes_));
    for (auto& list : counts->found) list.clear();
  }

  void add(const Scene<T>& scene, Counts<T>* counts) {
    seen_.assign(static_cast<size_t>(scene.truths), false);
    known_.assign(static_cast<size_t>(classes_), false);
    for (int64_t t = 0; t < scene.truths; ++t) {
      const size_t k = class_of(scene.labels[t * scene.width], "Label");
      known_[k] = true;
      if (difficult_ || !scene.difficult(t)) ++counts->boxes[k];
    }
    order_.clear();
    // Those of a class without a true box stay in input order, the others follow by descending score.
    for (int64_t d = 0; d < scene.found; ++d) {
      const size_t k = class_of(scene.detections[6 * d], "DetectRes");
      const T score = scene.detections[6 * d + 1];
      AB_CHECK(!std::isnan(score), InvalidArgument, "the scores of DetectRes must be numbers, got {} in row {}", score,
               d);
      if (known_[k]) {
        order_.push_back({score, static_cast<int32_t>(d)});
      } else {
        counts->found[k].push_back({score, false, true});
      }
    }
    std::sort(order_.begin(), order_.end());
    for (const auto& d : order_) {
      const T* row = scene.detections + 6 * int64_t{d.box};
      const Judged<T> judged = judge(scene, row);
      if (judged.right || judged.wrong) counts->found[static_cast<size_t>(row[0])].push_back(judged);
    }
  }

 private:
  size_t class_of(T label, const char* slot) const {
    const T whole = std::trunc(label);
    AB_CHECK(whole >= 0 && whole < static_cast<T>(classes_), InvalidArgument,
             "the classes of {} must be from 0 to {}, got {}", slot, classes_ - 1, label);
    return static_cast<size_t>(whole);
  }

  // A true box belongs to the first detection that overlaps it most. A detection of a difficult box that is excluded is
  // neither right nor wrong.
  Judged<T> judge(const Scene<T>& scene, const T* row) {
    T box[4];
    for (int64_t k = 0; k < 4; ++k) box[k] = std::clamp(row[2 + k], T(0), T(1));
    T most = -1;
    int64_t best = -1;
    for (int64_t t = 0; t < scene.truths; ++t) {
      if (scene.label(t) != static_cast<int64_t>(row[0])) continue;
      const T near = box_overlap(box, scene.box(t), T(0));
      if (near > most) {
        most = near;
        best = t;
      }
    }
    if (best < 0 || !(most > threshold_)) return {row[1], false, true};
    if (!difficult_ && scene.difficult(best)) return {row[1], false, false};
    const bool first = !seen_[static_cast<size_t>(best)];
    seen_[static_cast<size_t>(best)] = true;
    return {row[1], first, !first};
  }

  int64_t classes_;
  T threshold_;
  bool difficult_;
  std::vector<bool> seen_, known_;  // true boxes that were found; classes that have one in the image
  std::vector<Detection<T>> order_;
};

// The precision-recall curve of one class: the area under its steps, or the mean of the best precision at 11 recalls.
template <class T> T average(std::vector<Judged<T>> found, int64_t boxes, bool eleven) {
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  T right = 0, all = 0, area = 0, before = 0;
  T best[11] = {};
  for (const auto& d : found) {
    right += d.right ? T(1) : T(0);
    all += (d.right ? T(1) : T(0)) + (d.wrong ? T(1) : T(0));
    const T precision = right / std::max(all, T(1)), recall = right / static_cast<T>(boxes);
    if (std::abs(recall - before) > static_cast<T>(1e-6)) {
      area += precision * (recall - before);
      before = recall;
    }
    for (int k = 0; k <= 10; ++k) {
      if (static_cast<double>(recall) >= k / 10.0) best[k] = std::max(best[k], precision);
    }
  }
  if (!eleven) return area;
  T sum = 0;
  for (T p : best) sum += p;
  return sum / 11;
}

// The mean over classes that have a true box.
template <class T> T mean_average(const Counts<T>& counts, bool eleven) {
  T sum = 0;
  int64_t classes = 0;
  for (size_t k = 0; k < counts.boxes.size(); ++k) {
    if (counts.boxes[k] <= 0) continue;
    sum += average(counts.found[k], counts.boxes[k], eleven);
    ++classes;
  }
  return classes ? sum / static_cast<T>(classes) : T(0);
}

}  // namespace anabranch::detection
