#include "core/lod.h"

#include <fmt/format.h>

#include "base/error.h"

namespace anabranch {

void check_lod(const LoD& lod, int64_t rows) {
  for (size_t i = 0; i < lod.size(); ++i) {
    const auto& level = lod[i];
    AB_CHECK(level.size() >= 2, InvalidArgument, "LoD level {} has {} offsets, at least 2 are needed", i, level.size());
    AB_CHECK(level[0] == 0, InvalidArgument, "LoD level {} must begin with 0, got {}", i, level[0]);
    for (size_t k = 1; k < level.size(); ++k) {
      AB_CHECK(level[k] >= level[k - 1], InvalidArgument, "LoD level {} decreases at offset {}: {} after {}", i, k,
               level[k], level[k - 1]);
    }
    const bool last = i + 1 == lod.size();
    const int64_t below = last ? rows : static_cast<int64_t>(lod[i + 1].size()) - 1;
    AB_CHECK(below < 0 || level.back() == below, InvalidArgument, "LoD level {} ends at {}, but there are {} {}", i,
             level.back(), below, last ? "rows" : "sequences below it");
  }
}

LoD lod_from_lengths(const std::vector<std::vector<int64_t>>& lengths) {
  LoD lod;
  for (const auto& level : lengths) {
    auto& offsets = lod.emplace_back(1, 0);
    for (int64_t n : level) {
      AB_CHECK(n >= 0, InvalidArgument, "sequence length {} is negative", n);
      offsets.push_back(offsets.back() + n);
    }
  }
  return lod;
}

std::vector<std::vector<int64_t>> lod_to_lengths(const LoD& lod) {
  std::vector<std::vector<int64_t>> lengths;
  for (const auto& level : lod) {
    auto& out = lengths.emplace_back();
    for (size_t k = 1; k < level.size(); ++k) out.push_back(level[k] - level[k - 1]);
  }
  return lengths;
}

std::string lod_str(const LoD& lod) {
  std::string s = "[";
  for (size_t i = 0; i < lod.size(); ++i) s += fmt::format("{}[{}]", i ? ", " : "", fmt::join(lod[i], ", "));
  return s + "]";
}

LoD slice_lod(const LoD& lod, int64_t begin, int64_t end, int64_t* first_row, int64_t* last_row) {
  LoD out;
  for (const auto& level : lod) {
    auto& offsets = out.emplace_back();
    for (int64_t k = begin; k <= end; ++k) offsets.push_back(level[k] - level[begin]);
    const int64_t next_begin = level[begin], next_end = level[end];
    begin = next_begin;
    end = next_end;
  }
  *first_row = begin;
  *last_row = end;
  return out;
}

void append_lod(LoD* lod, const LoD& tail) {
  if (lod->empty()) *lod = LoD(tail.size(), std::vector<int64_t>{0});
  AB_CHECK(lod->size() == tail.size(), InvalidArgument, "cannot append {} LoD levels to {}", tail.size(), lod->size());
  for (size_t i = 0; i < tail.size(); ++i) {
    const int64_t shift = (*lod)[i].back();
    for (size_t k = 1; k < tail[i].size(); ++k) (*lod)[i].push_back(tail[i][k] + shift);
  }
}

}  // namespace anabranch
