// The columns that a schema can use of libsvm lines, "label index:value index:value ...":
//
//   label            the first field               qid              the value of qid:..., after the label
//   3                the value of the pair with this index; a line without it has no text for it
//   index, value     all indices, or all values, with a space between them
//   index 14-39, value 40-                         those of the pairs whose index is in this range
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace anabranch::data {

struct PairColumn {
  enum class Part : uint8_t { kLabel, kQid, kOne, kIndices, kValues };
  Part part = Part::kLabel;
  uint64_t low = 0, high = UINT64_MAX;  // of indices; one: low

  bool is_list() const { return part >= Part::kIndices; }
  bool takes(uint64_t index) const { return index >= low && index <= high; }
};

// A column by its number (at least 0), or by its name. False: there is none of this name.
bool pair_column(int64_t number, std::string_view name, PairColumn* column);

// An index in digits. *text: without a plus and zeros in front, as lists have it.
bool read_index(std::string_view* text, uint64_t* index);

}  // namespace anabranch::data
