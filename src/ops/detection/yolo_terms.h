// The terms of the YOLOv3 loss for one image, and their derivatives.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch::detection {

using Ints = std::vector<int32_t>;

inline constexpr int64_t kYoloParts = 5;  // x, y, width, height, confidence; the scores of classes follow
inline constexpr float kNoSide = 1e-6f;   // boxes with a smaller side are padding

template <class T> T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }
template <class T> T entropy(T x, T label) {  // of sigmoid(x)
  return std::max(x, T(0)) - x * label + std::log1p(std::exp(-std::abs(x)));
}

template <class T> struct Box {  // centre and size, as fractions of the image
  T x, y, w, h;
};

template <class T> T overlap(const Box<T>& a, const Box<T>& b) {
  const T w = std::min(a.x + a.w / 2, b.x + b.w / 2) - std::max(a.x - a.w / 2, b.x - b.w / 2);
  const T h = std::min(a.y + a.h / 2, b.y + b.h / 2) - std::max(a.y - a.h / 2, b.y - b.h / 2);
  const T common = w < 0 || h < 0 ? T(0) : w * h;
  return common / (a.w * a.h + b.w * b.h - common);
}

// One image: X, the ground truth, and the masks, which the gradient only reads.
template <class T, class Mask = T, class Match = int32_t> struct Image {
  const T* x;
  const T* boxes;
  const int32_t* labels;
  const T* scores;  // null: 1 each
  Mask* objects;    // per anchor and cell: the score of its true box; 0: none; -1: close enough to one
  Match* matches;
  Box<T> truth(int64_t t) const { return {boxes[4 * t], boxes[4 * t + 1], boxes[4 * t + 2], boxes[4 * t + 3]}; }
};

template <class T> class Yolo {
 public:
  explicit Yolo(const KernelArgs& op)
      : anchors_(op.attr<Ints>("anchors")),
        mask_(op.attr<Ints>("anchor_mask")),
        classes_(op.attr<int32_t>("class_num")),
        ratio_(op.attr<int32_t>("downsample_ratio")),
        ignore_(static_cast<T>(op.attr<float>("ignore_thresh"))),
        scale_(static_cast<T>(op.attr<float>("scale_x_y"))) {
    const T smooth =
        op.attr<bool>("use_label_smooth") ? std::min(T(1) / static_cast<T>(classes_), static_cast<T>(1.0 / 40)) : T(0);
    yes_ = 1 - smooth;
    no_ = smooth;
  }

  void set_extents(const Shape& x, int64_t truths) {
    grid_ = x[2];
    truths_ = truths;
  }

  // Fills the masks.
  void match(const Image<T>& image) const {
    for (int64_t a = 0; a < anchors(); ++a) {
      for (int64_t cell = 0; cell < plane(); ++cell) {
        image.objects[a * plane() + cell] = nearest(image, a, cell) > ignore_ ? T(-1) : T(0);
      }
    }
    for (int64_t t = 0; t < truths_; ++t) {
      image.matches[t] = -1;
      if (!valid(image.truth(t))) continue;
      image.matches[t] = anchor_of(image.truth(t));
      if (image.matches[t] < 0) continue;
      AB_CHECK(image.labels[t] >= 0 && image.labels[t] < classes_, InvalidArgument,
               "GTLabel must be from 0 to {}, got {}", classes_ - 1, image.labels[t]);
      image.objects[image.matches[t] * plane() + cell_of(image.truth(t))] = score(image, t);
    }
  }

  // Uses the masks. If `dx` is given, adds the gradient times `factor` to it.
  template <class Any> T loss(const Any& image, const T* factor = nullptr, T* dx = nullptr) const {
    const Slope slope{factor, dx};
    T sum = 0;
    for (int64_t t = 0; t < truths_; ++t) {
      if (image.matches[t] < 0) continue;
      AB_CHECK(image.matches[t] < anchors(), InvalidArgument, "GTMatchMask must be below {}, got {}", anchors(),
               image.matches[t]);
      sum += of_truth(image, t, slope);
    }
    for (int64_t k = 0; k < anchors() * plane(); ++k) {
      const T object = image.objects[k];
      if (!(object > T(-0.5))) continue;
      const bool there = object > static_cast<T>(1e-5);
      const T weight = there ? object : T(1);
      sum += coded(image, at(k / plane(), 4, k % plane()), there ? T(1) : T(0), weight, slope);
    }
    return sum;
  }

  int64_t anchors() const { return static_cast<int64_t>(mask_.size()); }

 private:
  struct Slope {  // destination of the gradient, may be null
    const T* factor;
    T* dx;
    void add(int64_t k, T by) const {
      if (dx) dx[k] += by * *factor;
    }
  };
  int64_t plane() const { return grid_ * grid_; }
  int64_t at(int64_t anchor, int64_t part, int64_t cell) const {
    return (anchor * (kYoloParts + classes_) + part) * plane() + cell;
  }
  T width(int64_t anchor) const { return static_cast<T>(anchors_[static_cast<size_t>(2 * anchor)]); }
  T height(int64_t anchor) const { return static_cast<T>(anchors_[static_cast<size_t>(2 * anchor + 1)]); }
  T input() const { return static_cast<T>(ratio_ * grid_); }
  template <class Any> T score(const Any& image, int64_t t) const { return image.scores ? image.scores[t] : T(1); }
  static bool valid(const Box<T>& b) { return !(b.w < static_cast<T>(kNoSide) || b.h < static_cast<T>(kNoSide)); }

  int64_t cell_of(const Box<T>& b) const {
    AB_CHECK(b.x >= 0 && b.x < 1 && b.y >= 0 && b.y < 1, InvalidArgument,
             "the centres of GTBox must be from 0 to below 1, got ({}, {})", b.x, b.y);
    const T grid = static_cast<T>(grid_);
    const int64_t row = std::min(static_cast<int64_t>(b.y * grid), grid_ - 1);
    return row * grid_ + std::min(static_cast<int64_t>(b.x * grid), grid_ - 1);
  }

  // The largest overlap of a predicted box with a true one.
  T nearest(const Image<T>& image, int64_t a, int64_t cell) const {
    const T grid = static_cast<T>(grid_), bias = (1 - scale_) / 2;
    const int64_t anchor = mask_[static_cast<size_t>(a)], row = cell / grid_, column = cell % grid_;
    const Box<T> box{(static_cast<T>(column) + sigmoid(image.x[at(a, 0, cell)]) * scale_ + bias) / grid,
                     (static_cast<T>(row) + sigmoid(image.x[at(a, 1, cell)]) * scale_ + bias) / grid,
                     std::exp(image.x[at(a, 2, cell)]) * width(anchor) / input(),
                     std::exp(image.x[at(a, 3, cell)]) * height(anchor) / input()};
    T most = 0;
    for (int64_t t = 0; t < truths_; ++t) {
      if (valid(image.truth(t))) most = std::max(most, overlap(box, image.truth(t)));
    }
    return most;
  }

  // The index in anchor_mask of the anchor with the shape closest to the box, -1 if it belongs to another scale.
  int32_t anchor_of(const Box<T>& truth) const {
    T most = 0;
    int32_t best = 0;
    for (size_t k = 0; k < anchors_.size() / 2; ++k) {
      const auto n = static_cast<int64_t>(k);
      const T near = overlap(Box<T>{0, 0, width(n) / input(), height(n) / input()}, Box<T>{0, 0, truth.w, truth.h});
      if (near > most) {
        most = near;
        best = static_cast<int32_t>(k);
      }
    }
    const auto found = std::find(mask_.begin(), mask_.end(), best);
    return found == mask_.end() ? -1 : static_cast<int32_t>(found - mask_.begin());
  }

  template <class Any> T coded(const Any& image, int64_t k, T label, T weight, const Slope& slope) const {
    slope.add(k, (sigmoid(image.x[k]) - label) * weight);
    return entropy(image.x[k], label) * weight;
  }
  template <class Any> T absolute(const Any& image, int64_t k, T target, T weight, const Slope& slope) const {
    slope.add(k, image.x[k] > target ? weight : -weight);
    return std::abs(image.x[k] - target) * weight;
  }

  // Location, size and class terms of the box that must be predicted.
  template <class Any> T of_truth(const Any& image, int64_t t, const Slope& slope) const {
    const Box<T> box = image.truth(t);
    const int64_t a = image.matches[t], anchor = mask_[static_cast<size_t>(a)], cell = cell_of(box);
    const int64_t row = cell / grid_, column = cell % grid_;
    const T grid = static_cast<T>(grid_), given = score(image, t), weight = (2 - box.w * box.h) * given;
    T sum = coded(image, at(a, 0, cell), box.x * grid - static_cast<T>(column), weight, slope);
    sum += coded(image, at(a, 1, cell), box.y * grid - static_cast<T>(row), weight, slope);
    sum += absolute(image, at(a, 2, cell), std::log(box.w * input() / width(anchor)), weight, slope);
    sum += absolute(image, at(a, 3, cell), std::log(box.h * input() / height(anchor)), weight, slope);
    for (int64_t k = 0; k < classes_; ++k) {
      sum += coded(image, at(a, kYoloParts + k, cell), k == image.labels[t] ? yes_ : no_, given, slope);
    }
    return sum;
  }

  Ints anchors_, mask_;
  int64_t classes_, ratio_, grid_ = 0, truths_ = 0;
  T ignore_, scale_, yes_ = 1, no_ = 0;
};

}  // namespace anabranch::detection
