#include "engine/group_areas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace anabranch {
namespace {

constexpr size_t kRowsOfBucket = 128;

struct Row {
  int64_t group;
  uint32_t code;
  uint32_t score() const { return code & ~kLabelBit; }
  bool operator<(const Row& other) const {
    return group != other.group ? group < other.group : score() < other.score();
  }
};

// Counts of a group whose rows come in ascending order of predictions.
class Area {
 public:
  void add(uint32_t code) {
    if (const uint32_t score = code & ~kLabelBit; score != score_) {
      end_run();
      score_ = score;
    }
    ++run_[code >> 31];
  }
  void end(GroupAreas* sum) {
    end_run();
    if (negatives_ && positives_) {
      const auto pairs = static_cast<double>(negatives_) * static_cast<double>(positives_);
      sum->weighted += static_cast<double>(twice_) / (2 * pairs) * static_cast<double>(negatives_ + positives_);
      sum->rows += negatives_ + positives_;
    }
    *this = {};
  }

 private:
  void end_run() {  // of equal predictions
    twice_ += static_cast<__int128>(run_[1]) * (2 * negatives_ + run_[0]);
    negatives_ += run_[0];
    positives_ += run_[1];
    run_ = {};
  }

  uint32_t score_ = 0;
  std::array<int64_t, 2> run_{};
  int64_t negatives_ = 0, positives_ = 0;
  __int128 twice_ = 0;  // pairs in order, each counted twice
};

size_t bucket_of(int64_t group, int bits) {
  return bits ? static_cast<size_t>(static_cast<uint64_t>(group) * 0x9e3779b97f4a7c15u >> (64 - bits)) : 0;
}

// The rows, such that those of a group are near each other: a sort of each bucket then stays in the nearest cache.
std::vector<Row> dealt(std::span<const int64_t> groups, std::span<const uint32_t> codes, std::vector<size_t>* ends) {
  const int bits = std::max(0, static_cast<int>(std::bit_width(groups.size() / kRowsOfBucket)) - 1);
  ends->assign((size_t{1} << bits) + 1, 0);
  for (const int64_t group : groups) ++(*ends)[bucket_of(group, bits) + 1];
  for (size_t i = 1; i < ends->size(); ++i) (*ends)[i] += (*ends)[i - 1];
  std::vector<Row> rows(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) rows[(*ends)[bucket_of(groups[i], bits)]++] = {groups[i], codes[i]};
  ends->pop_back();
  return rows;
}

// By predictions: eleven bits at a time.
std::vector<uint32_t> sorted(std::span<const uint32_t> codes) {
  constexpr int kBits = 11;
  std::vector<uint32_t> from(codes.begin(), codes.end()), to(codes.size());
  for (int shift = 0; shift < 31; shift += kBits) {
    const auto digit = [shift](uint32_t code) { return (code & ~kLabelBit) >> shift & ((1u << kBits) - 1); };
    std::array<size_t, (size_t{1} << kBits) + 1> place{};
    for (const uint32_t code : from) ++place[digit(code) + 1];
    for (size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
    for (const uint32_t code : from) to[place[digit(code)]++] = code;
    from.swap(to);
  }
  return from;
}

}  // namespace

GroupAreas group_areas(std::span<const int64_t> groups, std::span<const uint32_t> codes) {
  GroupAreas sum;
  std::vector<size_t> ends;
  std::vector<Row> rows = dealt(groups, codes, &ends);
  Area area;
  size_t begin = 0;
  for (const size_t end : ends) {
    std::sort(rows.begin() + static_cast<int64_t>(begin), rows.begin() + static_cast<int64_t>(end));
    for (; begin < end; ++begin) {
      area.add(rows[begin].code);
      if (begin + 1 == end || rows[begin + 1].group != rows[begin].group) area.end(&sum);
    }
  }
  return sum;
}

GroupAreas whole_area(std::span<const uint32_t> codes) {
  GroupAreas sum;
  Area area;
  for (const uint32_t code : sorted(codes)) area.add(code);
  area.end(&sum);
  return sum;
}

}  // namespace anabranch
