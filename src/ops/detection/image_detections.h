// The detections of a batch of images as rows [class, score, box...], one sequence per image.
#pragma once
#include <memory>
#include <vector>

#include "ops/detection/rois.h"

namespace anabranch::detection {

// A box with its class; `box` is the index of a box of the image, or of a list that the op keeps.
template <class T> struct ClassDetection {
  T score;
  int32_t cls, box;
  bool operator<(const ClassDetection& o) const {  // best first
    return score != o.score ? score > o.score : cls != o.cls ? cls < o.cls : box < o.box;
  }
};

// Keeps the `most` best, in their order; below 0: all.
template <class T> void keep_best(std::vector<ClassDetection<T>>* found, int64_t most) {
  if (most < 0 || static_cast<int64_t>(found->size()) <= most) return;
  if (most == 0) return found->clear();
  auto ranked = *found;
  std::nth_element(ranked.begin(), ranked.begin() + most - 1, ranked.end());
  const auto last = ranked[static_cast<size_t>(most) - 1];
  found->erase(std::remove_if(found->begin(), found->end(), [&](const auto& d) { return last < d; }), found->end());
}

// Offsets of each image's detections.
template <class T>
std::vector<int64_t> ends_of(const std::vector<std::vector<ClassDetection<T>>>& found, int64_t images) {
  std::vector<int64_t> ends(1, 0);
  for (int64_t n = 0; n < images; ++n) {
    ends.push_back(ends.back() + static_cast<int64_t>(found[static_cast<size_t>(n)].size()));
  }
  return ends;
}

// Out = [[-1]] with one sequence, which means "nothing found" as in Fluid 1.8.5.
template <class T> void write_nothing(Tensor* out) {
  out->resize(Shape{1, 1}, dtype_of<T>);
  *out->mutable_data<T>() = T(-1);
  out->set_lod(std::make_shared<const LoD>(LoD{{0, 1}}));
}

// box_at(image, detection) points to the `size` numbers of its box.
template <class T, class BoxAt>
void write_detections(const std::vector<std::vector<ClassDetection<T>>>& found, std::vector<int64_t> ends, int64_t size,
                      int32_t first_class, Tensor* out, BoxAt&& box_at) {
  const auto images = static_cast<int64_t>(ends.size()) - 1;
  out->resize(Shape{ends.back(), size + 2}, dtype_of<T>);
  T* to = out->mutable_data<T>();
  for (int64_t n = 0; n < images; ++n) {
    for (const ClassDetection<T>& d : found[static_cast<size_t>(n)]) {
      *to++ = static_cast<T>(d.cls + first_class);
      *to++ = d.score;
      to = std::copy_n(box_at(n, d), size, to);
    }
  }
  out->set_lod(images > 0 ? std::make_shared<const LoD>(LoD{std::move(ends)}) : nullptr);
}

}  // namespace anabranch::detection
