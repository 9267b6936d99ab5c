// Whether a line of MultiSlot or libsvm text could hold the texts of a row's columns, so that a row which was in no
// file is refused.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "data/row_inputs.h"

namespace anabranch::data {

struct RowTexts {
  Lines lines;
  const std::vector<RowInputs::Column>& columns;
  std::span<const std::string_view> values;  // one per column
  int64_t row;
  const std::vector<std::string>& slots;  // of MultiSlot lines, in their order

  // InvalidArgument names the row and the column. False: the column *at has several values, and the feature
  // Column::one takes one; the first such slot of a line.
  bool check(size_t* at) const;

 private:
  bool check_slots(size_t* at) const;
  bool check_slot(size_t at) const;
  void check_pair(size_t at) const;
  void check_indices(size_t at) const;
  void check_lists() const;
  [[noreturn]] void refuse(size_t at, const char* why) const;
};

}  // namespace anabranch::data
