// Regions of interest: boxes [rois, 4] in pixels of the images that feature maps X [N, C, H, W] come from. The LoD of
// the regions, or an input with counts, says which image a region belongs to.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection {

// At run time: `slot` must have one sequence per image, ending at its last row. Of several LoD levels the last one
// counts.
inline void check_sequence_each(const InferContext& c, std::string_view slot, int64_t images) {
  const Meta& m = c.in(slot);
  AB_CHECK(m.lod && !m.lod->empty(), InvalidArgument, "{} must have a sequence for each image; feed a LoDTensor", slot);
  const std::vector<int64_t>& o = m.lod->back();
  AB_CHECK(static_cast<int64_t>(o.size()) - 1 == images, ShapeMismatch,
           "{} must have a sequence for each of the {} images, got {}", slot, images, o.size() - 1);
  AB_CHECK(o.back() == m.shape[0], InvalidArgument, "the LoD of {} must end at its last row, got row {} of {}", slot,
           o.back(), m.shape.str());
}

// At run time: `slot` must have no sequences, or those of `boxes`, whose rows it describes.
inline void check_same_sequences(const InferContext& c, std::string_view slot, std::string_view boxes) {
  const LoDRef& lod = c.in(slot).lod;
  AB_CHECK(!lod || lod->empty() || lod->back() == c.in(boxes).lod->back(), ShapeMismatch,
           "{} must have the sequences of {}, or none", slot, boxes);
}

// Checks X, regions of `width` numbers, and the optional `counts`: offsets, `ends` (1) more than there are images, or
// lengths (0).
inline void check_rois(const InferContext& c, std::string_view x, int64_t width, const char* counts = nullptr,
                       int64_t ends = 0) {
  check_rank(c, x, 4, 4);
  check_rank(c, "ROIs", 2, 2);
  check_shape(c, "ROIs", Shape{kUnknown, width});
  if (!c.runtime()) return;
  check_same_dtype(c, x, "ROIs");
  const int64_t images = c.in(x).shape[0];
  if (!counts || !c.has_in(counts)) return check_sequence_each(c, "ROIs", images);
  check_numel(c, counts, images + ends);
  check_dtype(c, counts, DType::kInt64);
}

// [rois, channels, pooled_height, pooled_width]
inline Shape pooled_shape(const InferContext& c, int64_t channels) {
  const int32_t rows = c.attr<int32_t>("pooled_height"), columns = c.attr<int32_t>("pooled_width");
  AB_CHECK(rows > 0 && columns > 0, InvalidArgument, "pooled_height and pooled_width must be above 0, got {} and {}",
           rows, columns);
  const float scale = c.attr<float>("spatial_scale");
  AB_CHECK(scale > 0, InvalidArgument, "spatial_scale must be above 0, got {}", scale);
  return {c.in("ROIs").shape[0], channels, rows, columns};
}

inline void pool_attrs(OpDef& def) {
  def.attr<float>("spatial_scale", 1.0f, "pixels of X for a pixel of the image, above 0")
      .attr<int32_t>("pooled_height", 1, "rows of bins, above 0")
      .attr<int32_t>("pooled_width", 1, "columns of bins, above 0");
}

// The image of each region. The list is kept from step to step.
class Owners {
 public:
  const std::vector<int32_t>& by_sequences(const Tensor& rois) {
    image_.clear();
    const std::vector<int64_t>& ends = rois.lod().back();
    for (size_t n = 0; n + 1 < ends.size(); ++n) add(n, ends[n + 1] - ends[n]);
    return image_;
  }
  const std::vector<int32_t>& by_offsets(const Tensor& offsets, int64_t rois) {
    image_.clear();
    const auto* at = offsets.data<int64_t>();
    const int64_t n = offsets.numel();
    AB_CHECK(at[0] == 0 && at[n - 1] == rois && std::is_sorted(at, at + n), InvalidArgument,
             "RoisLod must ascend from 0 to the {} rows of ROIs, got {} to {}", rois, at[0], at[n - 1]);
    for (int64_t i = 0; i + 1 < n; ++i) add(static_cast<size_t>(i), at[i + 1] - at[i]);
    return image_;
  }
  const std::vector<int32_t>& by_lengths(const Tensor& lengths, int64_t rois) {
    image_.clear();
    const auto* length = lengths.data<int64_t>();
    int64_t left = rois;
    for (int64_t i = 0; i < lengths.numel(); ++i) {
      AB_CHECK(length[i] >= 0 && length[i] <= left, InvalidArgument,
               "BatchRoINums must add up to the {} rows of ROIs, got {} at {}", rois, length[i], i);
      left -= length[i];
      add(static_cast<size_t>(i), length[i]);
    }
    AB_CHECK(left == 0, InvalidArgument, "BatchRoINums must add up to the {} rows of ROIs, got {}", rois, rois - left);
    return image_;
  }

 private:
  void add(size_t image, int64_t count) {
    image_.insert(image_.end(), static_cast<size_t>(count), static_cast<int32_t>(image));
  }
  std::vector<int32_t> image_;
};

// A number as an integer in [low, high], `low` for NaN.
template <class T> int64_t clamped(T value, int64_t low, int64_t high) {
  if (!(value > static_cast<T>(low))) return low;
  return value < static_cast<T>(high) ? std::min(high, static_cast<int64_t>(value)) : high;
}

}  // namespace anabranch::detection
