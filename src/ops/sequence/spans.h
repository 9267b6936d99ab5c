// The sequences that kernels iterate over: those of a LoD, or the first rows of each entry of a dense batch, whose
// lengths another input gives.
#pragma once
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence {

class Spans {
 public:
  explicit Spans(const Offsets& lod) : lod_(&lod), count_(sequence::count(lod)) {}
  // A batch of `count` entries of `width` rows; entry s has lengths[s] valid rows. `slot` names the lengths in errors.
  Spans(const char* slot, const int64_t* lengths, int64_t count, int64_t width)
      : lengths_(lengths), count_(count), width_(width) {
    for (int64_t s = 0; s < count; ++s) {
      AB_CHECK(lengths[s] >= 0 && lengths[s] <= width, InvalidArgument, "{} must be from 0 to {}, got {} for entry {}",
               slot, width, lengths[s], s);
    }
  }
  int64_t count() const { return count_; }
  int64_t begin(int64_t s) const { return lod_ ? (*lod_)[static_cast<size_t>(s)] : s * width_; }
  int64_t rows(int64_t s) const {
    return lod_ ? (*lod_)[static_cast<size_t>(s) + 1] - (*lod_)[static_cast<size_t>(s)] : lengths_[s];
  }

 private:
  const Offsets* lod_ = nullptr;
  const int64_t* lengths_ = nullptr;
  int64_t count_, width_ = 0;
};

// The lengths of a batch: one number per entry.
inline void check_lengths(const InferContext& c, std::string_view slot, int64_t batch) {
  check_ids_dtype(c, slot);
  check_number_per_row(c, slot, batch);
}

// The rows of the outermost sequences. `rows` holds them where there are several levels.
inline const Offsets& outer_rows(const LoD& lod, Offsets* rows) {
  if (lod.size() == 1) return lod.front();
  *rows = lod.front();
  for (size_t level = 1; level < lod.size(); ++level) {
    for (int64_t& o : *rows) o = lod[level][static_cast<size_t>(o)];
  }
  return *rows;
}

// The outermost level of an input, whose offsets Fluid 1.8.5 takes as rows even if they count sequences: with several
// levels, the last rows belong to no sequence.
inline const Offsets& outer_level(const InferContext& c, std::string_view slot) {
  const Offsets& o = lod_of(c, slot).front();
  AB_CHECK(o.back() <= c.in(slot).shape[0], InvalidArgument,
           "the outermost LoD level of {} must end at its last row or before it, got row {} of {}", slot, o.back(),
           c.in(slot).shape.str());
  return o;
}

// The LoD of an input, which must have one level.
inline const LoD& single_level(const InferContext& c, std::string_view slot) {
  const LoD& lod = lod_of(c, slot);
  AB_CHECK(lod.size() == 1, InvalidArgument, "{} must have one LoD level, got {}", slot, lod.size());
  return lod;
}

}  // namespace anabranch::sequence
