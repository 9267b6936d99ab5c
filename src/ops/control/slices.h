// Sequences that control-flow ops move as a whole: by the offsets of one level, or row by row without LoD.
#pragma once
#include <cstring>

#include "opdef/kernel_context.h"

namespace anabranch::control {

struct Rows {
  int64_t first = 0, count = 0;
};

inline size_t row_bytes(const Tensor& t) { return static_cast<size_t>(t.row_elems()) * dtype_size(t.dtype()); }

inline void copy_rows(const Tensor& from, int64_t first, Tensor& to, int64_t at, int64_t count) {
  const size_t bytes = row_bytes(from);
  if (bytes == 0 || count == 0) return;
  std::memcpy(static_cast<char*>(to.mutable_raw()) + static_cast<size_t>(at) * bytes,
              static_cast<const char*>(from.raw()) + static_cast<size_t>(first) * bytes,
              static_cast<size_t>(count) * bytes);
}

// The items of a tensor at one LoD level: the sequences of that level, or rows without LoD.
class Slices {
 public:
  Slices() = default;
  Slices(const LoD& lod, int level, int64_t rows) : rows_(rows) {
    if (lod.empty()) return;
    AB_CHECK(level >= 0 && static_cast<size_t>(level) < lod.size(), InvalidArgument,
             "level must be one of the {} levels of sequences, got {}", lod.size(), level);
    below_.assign(lod.begin() + level, lod.end());
  }
  int64_t count() const { return below_.empty() ? rows_ : static_cast<int64_t>(below_[0].size()) - 1; }
  bool have_lod() const { return !below_.empty(); }
  size_t levels() const { return below_.size(); }
  // Rows of items [begin, end), and their LoD.
  Rows rows(int64_t begin, int64_t end) const {
    if (below_.empty()) return {begin, end - begin};
    int64_t first = begin, last = end;
    for (const auto& offsets : below_) {
      first = offsets[static_cast<size_t>(first)];
      last = offsets[static_cast<size_t>(last)];
    }
    return {first, last - first};
  }
  LoD lod(int64_t begin, int64_t end) const {
    int64_t first = 0, last = 0;
    return below_.empty() ? LoD{} : slice_lod(below_, begin, end, &first, &last);
  }

 private:
  LoD below_;
  int64_t rows_ = 0;
};

inline void give_lod(Tensor& t, LoD lod) {
  t.set_lod(lod.empty() ? LoDRef() : std::make_shared<const LoD>(std::move(lod)));
}

// Like `like`, with another number of rows.
inline void resize_rows(Tensor& t, const Tensor& like, int64_t rows) {
  Shape shape = like.shape();
  AB_CHECK(shape.rank() > 0, InvalidArgument, "a tensor of sequences must have at least one axis, got a scalar");
  shape.set(0, rows);
  if (t.is_shared()) t = Tensor();
  t.resize(shape, like.dtype());
}

}  // namespace anabranch::control
