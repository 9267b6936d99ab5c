// Areas under the ROC curve within groups of rows, from predictions as codes (engine/ranking_counts.h).
#pragma once
#include <cstdint>
#include <span>

namespace anabranch {

inline constexpr uint32_t kLabelBit = uint32_t{1} << 31;  // of a code; the others are those of the prediction, a float

struct GroupAreas {
  double weighted = 0;  // sum over the groups with both labels: the area times the number of rows
  int64_t rows = 0;     // of these groups
};

// `groups`: one for each code. Equal predictions count half.
GroupAreas group_areas(std::span<const int64_t> groups, std::span<const uint32_t> codes);
// All rows are one group.
GroupAreas whole_area(std::span<const uint32_t> codes);

}  // namespace anabranch
