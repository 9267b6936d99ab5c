// Images of different sizes in one tensor: the sequence lengths of ROW and COLUMN are the heights and widths of images;
// a sequence of X has the numbers of an image, channel by channel, row by row.
#pragma once
#include "ops/sequence/spans.h"

namespace anabranch::sequence {

struct ImageSize {
  int64_t height, width;
};

class ImageSizes {
 public:
  ImageSizes(const Offsets& rows, const Offsets& columns) : rows_(rows), columns_(columns) {}
  int64_t count() const { return sequence::count(rows_); }
  ImageSize operator[](int64_t k) const {
    const auto s = static_cast<size_t>(k);
    return {rows_[s + 1] - rows_[s], columns_[s + 1] - columns_[s]};
  }

 private:
  const Offsets &rows_, &columns_;
};

// Checks that X, ROW and COLUMN describe images with this number of channels. Only at run time.
inline ImageSizes image_sizes(const InferContext& c, int64_t channels) {
  const Offsets &x = single_level(c, "X")[0], &rows = single_level(c, "ROW")[0];
  const Offsets& columns = single_level(c, "COLUMN")[0];
  AB_CHECK(rows.size() == x.size() && columns.size() == x.size(), InvalidArgument,
           "X, ROW and COLUMN must have the same number of sequences, got {}, {} and {}", sequence::count(x),
           sequence::count(rows), sequence::count(columns));
  const ImageSizes sizes(rows, columns);
  for (int64_t s = 0; s < sizes.count(); ++s) {
    const int64_t have = x[static_cast<size_t>(s) + 1] - x[static_cast<size_t>(s)];
    AB_CHECK(have == channels * sizes[s].height * sizes[s].width, InvalidArgument,
             "sequence {} of X must have {} channels of {} x {} numbers, got {}", s, channels, sizes[s].height,
             sizes[s].width, have);
  }
  return sizes;
}

// Checks the slots X, ROW and COLUMN, also when a layer is called.
inline void check_images(const InferContext& c) {
  check_rank(c, "X", 2, 2);
  check_shape(c, "X", Shape{kUnknown, 1});
}

}  // namespace anabranch::sequence
