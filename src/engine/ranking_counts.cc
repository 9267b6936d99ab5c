#include "engine/ranking_counts.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "core/host_copy.h"
#include "engine/group_areas.h"

namespace anabranch {
namespace {

constexpr int kDroppedBits = 9;  // of the 23 of a float's fraction
// 2^-25 as the bits of a float, without the dropped ones.
constexpr uint32_t kLowest = (127 - 25) << (23 - kDroppedBits);
constexpr int64_t kMiddle = RankingCounts::kOctaves * RankingCounts::kPerOctave;  // the bin of 1/2

int64_t steps_above_lowest(float distance) {
  return std::max(std::bit_cast<uint32_t>(distance) >> kDroppedBits, kLowest) - kLowest;
}

// 1: positive, 0: negative, -1: ignored.
template <class T> void signs_of(const T* label, int64_t rows, int8_t* out) {
  for (int64_t i = 0; i < rows; ++i) {
    AB_CHECK(label[i] == label[i], InvalidArgument, "label of sample {} must be a number, got nan", i);
    out[i] = label[i] > T(0) ? 1 : label[i] < T(0) ? -1 : 0;
  }
}

void read_signs(const Tensor& label, int8_t* out) {
  switch (label.dtype()) {
    case DType::kInt64: return signs_of(label.data<int64_t>(), label.numel(), out);
    case DType::kInt32: return signs_of(label.data<int32_t>(), label.numel(), out);
    case DType::kFloat32: return signs_of(label.data<float>(), label.numel(), out);
    case DType::kFloat64: return signs_of(label.data<double>(), label.numel(), out);
    default:
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("label must be int64, int32, float32 or float64, got {}", dtype_name(label.dtype())));
  }
}

}  // namespace

int64_t RankingCounts::bin_of(float predicted) {
  return predicted <= 0.5F ? steps_above_lowest(predicted) : 2 * kMiddle - steps_above_lowest(1 - predicted);
}

RankingCounts::Bin& RankingCounts::at(int64_t bin) {
  std::unique_ptr<Bin[]>& block = blocks_[static_cast<size_t>(bin / kBlock)];
  if (!block) block = std::make_unique<Bin[]>(kBlock);
  return block[bin % kBlock];
}

void RankingCounts::note_rows(int64_t rows) {
  rows_ += rows;
  if (groups_.empty() && rows_ > kFewRows) std::vector<uint32_t>().swap(codes_);
}

template <class T> void RankingCounts::add_rows(const T* predict, int64_t width, const int64_t* group) {
  const auto rows = static_cast<int64_t>(signs_.size());
  for (int64_t i = 0; i < rows; ++i) {
    const T predicted = predict[i * width + width - 1];
    AB_CHECK(predicted >= 0 && predicted <= 1, InvalidArgument, "prediction of sample {} must be from 0 to 1, got {}",
             i, predicted);
  }
  const bool keeps = group || rows_ <= kFewRows;
  int64_t added = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const T predicted = predict[i * width + width - 1] + T(0);  // -0 becomes 0
    if (signs_[i] < 0) continue;
    ++added;
    const size_t label = signs_[i] > 0 ? 1 : 0;
    Bin& bin = at(bin_of(static_cast<float>(predicted)));
    ++bin.rows[label];
    bin.predicted[label] += static_cast<double>(predicted);
    if (group) groups_.push_back(group[i]);
    if (keeps) codes_.push_back(std::bit_cast<uint32_t>(static_cast<float>(predicted)) | (label ? kLabelBit : 0));
  }
  note_rows(added);
}

void RankingCounts::add(const Tensor& predict, const Tensor& label, const Tensor* group) {
  Tensor copies[3];
  const Tensor &p = readable(predict, &copies[0]), &l = readable(label, &copies[1]);
  const int64_t rows = l.numel();
  AB_CHECK(p.numel() == rows || p.numel() == 2 * rows, InvalidArgument,
           "prediction must have one or two columns for each of {} labels, got {}", rows, p.shape().str());
  signs_.resize(static_cast<size_t>(rows));
  read_signs(l, signs_.data());
  const int64_t* groups = nullptr;
  if (group) {
    const Tensor* g = &readable(*group, &copies[2]);
    AB_CHECK(g->numel() == rows, InvalidArgument, "group must have one integer for each of {} labels, got {}", rows,
             g->shape().str());
    AB_CHECK(g->dtype() == DType::kInt64, InvalidArgument, "group must be int64, got {}", dtype_name(g->dtype()));
    groups = g->data<int64_t>();
  }
  const int64_t width = rows ? p.numel() / rows : 1;
  AB_CHECK(p.dtype() == DType::kFloat32 || p.dtype() == DType::kFloat64, InvalidArgument,
           "prediction must be float32 or float64, got {}", dtype_name(p.dtype()));
  p.dtype() == DType::kFloat32 ? add_rows(p.data<float>(), width, groups) : add_rows(p.data<double>(), width, groups);
}

void RankingCounts::add(const RankingCounts& other) {
  other.each_bin([this](int64_t index, const Bin& more) {
    Bin& bin = at(index);
    for (size_t label = 0; label < 2; ++label) {
      bin.rows[label] += more.rows[label];
      bin.predicted[label] += more.predicted[label];
    }
  });
  groups_.insert(groups_.end(), other.groups_.begin(), other.groups_.end());
  codes_.insert(codes_.end(), other.codes_.begin(), other.codes_.end());
  note_rows(other.rows_);
}

}  // namespace anabranch
