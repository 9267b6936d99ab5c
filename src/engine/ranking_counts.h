// Counts of predictions by label, from which metrics of ranking and calibration follow: AUC, normalized entropy,
// predicted over observed. The predictions themselves are kept as long as there are few rows, and with groups for all
// rows: 12 bytes for each. Adding a row costs no logarithm. For one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace anabranch {

class RankingCounts {
 public:
  // Bins have 2^-14 of their distance from 0 or 1, whichever is nearer, down to 2^-25: fine enough for predictions that
  // are all small, and for those that are all alike.
  static constexpr int64_t kOctaves = 24, kPerOctave = int64_t{1} << 14;
  static constexpr int64_t kBins = 2 * kOctaves * kPerOctave + 1;
  static constexpr int64_t kFewRows = int64_t{1} << 24;

  struct Bin {  // by label: 0, 1
    std::array<int64_t, 2> rows{};
    std::array<double, 2> predicted{};  // sums
    bool empty() const { return rows[0] + rows[1] == 0; }
  };

  // `predict`: [N, 1] or [N, 2], of which the last column counts, in [0, 1]. `label`: N numbers; above 0 positive,
  // below 0 ignored. `group`: N integers, or null in all calls. InvalidArgument otherwise.
  void add(const Tensor& predict, const Tensor& label, const Tensor* group);
  void add(const RankingCounts& other);
  void clear() { *this = {}; }

  // The bins that are not empty, in ascending order of predictions: use(index, bin).
  template <class Use> void each_bin(const Use& use) const {
    for (size_t block = 0; block < blocks_.size(); ++block) {
      for (int64_t i = 0; blocks_[block] && i < kBlock; ++i) {
        if (!blocks_[block][i].empty()) use(static_cast<int64_t>(block) * kBlock + i, blocks_[block][i]);
      }
    }
  }
  // For each row: its group, and the bits of the prediction as a float, the first of which is the label. Without
  // groups: no groups, and no codes if there are more than kFewRows.
  const std::vector<int64_t>& groups() const { return groups_; }
  const std::vector<uint32_t>& codes() const { return codes_; }

  static int64_t bin_of(float predicted);

 private:
  static constexpr int64_t kBlock = 4096;
  template <class T> void add_rows(const T* predict, int64_t width, const int64_t* group);
  Bin& at(int64_t bin);

  void note_rows(int64_t rows);

  std::array<std::unique_ptr<Bin[]>, kBins / kBlock + 1> blocks_;
  std::vector<int64_t> groups_;
  std::vector<uint32_t> codes_;
  int64_t rows_ = 0;
  std::vector<int8_t> signs_;  // scratch: of the labels of a batch
};

}  // namespace anabranch
