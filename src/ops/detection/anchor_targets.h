// Training targets of anchors and proposals: overlaps with the ground truth, offsets, and random choices among them.
// Boxes are in pixels (boxes.h).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/detection/rois.h"
#include "ops/kernels/philox.h"

namespace anabranch::detection {

inline constexpr double kSameOverlap = 1e-5;  // overlaps closer than this are equal

// overlaps[i * truths + j] of box i and true box j: intersection over union.
template <class T>
void overlap_all(const std::vector<T>& boxes, const std::vector<T>& truth, std::vector<T>* overlaps) {
  overlaps->clear();
  for (size_t i = 0; i < boxes.size(); i += 4) {
    for (size_t j = 0; j < truth.size(); j += 4) {
      const T common = intersection(boxes.data() + i, truth.data() + j, T(1));
      overlaps->push_back(
          common <= 0 ? T(0) : common / (area(boxes.data() + i, T(1)) + area(truth.data() + j, T(1)) - common));
    }
  }
}

// Offsets from a box to a true box, each over its weight: of the centre as fractions of the size, and the logarithms of
// the size ratios.
template <class T> void to_offsets(const T* box, const T* truth, const std::vector<float>* weights, T* to) {
  for (size_t axis : {size_t{0}, size_t{1}}) {
    const T size = box[axis + 2] - box[axis] + 1, truth_size = truth[axis + 2] - truth[axis] + 1;
    // The difference of the centres: exactly 0 for a box that is its true box.
    to[axis] = ((truth[axis] + truth_size / 2) - (box[axis] + size / 2)) / size;
    to[axis + 2] = std::log(truth_size / size);
  }
  for (size_t k = 0; weights && k < 4; ++k) to[k] /= static_cast<T>((*weights)[k]);
}

// Draws without replacement; random numbers are a function of the op, the step, the image, and the index of the draw.
// All lists of an image draw with the same numbers, as in Fluid 1.8.5: two equal lists keep the same entries. Anchors
// that are candidates for foreground and background, because a true box touches none of them, thus become background.
class Draw {
 public:
  Draw(const RandomKey& key, bool random) : rng_(key), random_(random) {}

  void start(int64_t image) { first_ = static_cast<uint64_t>(image) << 32; }

  // Keeps `count` of the entries: the first ones or, if random, any (Vitter, algorithm R, doi:10.1145/3147.3165). Calls
  // swap(i, k) for each exchange.
  template <class Swap> void shorten(std::vector<int64_t>* entries, int64_t count, Swap&& swap) {
    const auto n = static_cast<int64_t>(entries->size());
    if (count < 0 || count >= n) return;
    uint64_t next = first_;
    for (int64_t i = count; random_ && i < n; ++i) {
      const double u = rng_.uniform53(next++);
      const int64_t k = std::min(i, static_cast<int64_t>(u * static_cast<double>(i + 1)));
      if (k >= count) continue;
      std::swap((*entries)[static_cast<size_t>(i)], (*entries)[static_cast<size_t>(k)]);
      swap(i, k);
    }
    entries->resize(static_cast<size_t>(count));
  }
  void shorten(std::vector<int64_t>* entries, int64_t count) {
    shorten(entries, count, [](int64_t, int64_t) {});
  }

 private:
  Philox rng_;
  bool random_;
  uint64_t first_ = 0;
};

// Writes a list as the rows of an output.
template <class T> void write_rows(Tensor* out, const std::vector<T>& list, int64_t width, const LoDRef& lod) {
  out->resize({static_cast<int64_t>(list.size()) / width, width}, dtype_of<T>);
  std::copy(list.begin(), list.end(), out->mutable_data<T>());
  out->set_lod(lod);
}

}  // namespace anabranch::detection
