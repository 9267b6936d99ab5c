#include "data/pair_columns.h"

#include <algorithm>

#include "data/number.h"

namespace anabranch::data {
namespace {

// "14-39", "40-"
bool read_range(std::string_view text, PairColumn* column) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  std::string_view low = text.substr(0, dash), high = text.substr(dash + 1);
  return read_index(&low, &column->low) && (high.empty() || read_index(&high, &column->high)) &&
         column->low <= column->high;
}

}  // namespace

bool read_index(std::string_view* text, uint64_t* index) {
  if (text->starts_with('+')) text->remove_prefix(1);
  if (text->empty() || text->find_first_not_of("0123456789") != std::string_view::npos) return false;
  text->remove_prefix(std::min(text->find_first_not_of('0'), text->size() - 1));
  return careful_id(*text, index) == Spelling::kGood;
}

bool pair_column(int64_t number, std::string_view name, PairColumn* column) {
  using Part = PairColumn::Part;
  *column = {};
  if (number >= 0) {
    *column = {Part::kOne, static_cast<uint64_t>(number), static_cast<uint64_t>(number)};
    return true;
  }
  constexpr struct {
    std::string_view name;
    Part part;
  } kNames[] = {{"label", Part::kLabel}, {"qid", Part::kQid}, {"index", Part::kIndices}, {"value", Part::kValues}};
  const size_t space = name.find(' ');
  for (const auto& known : kNames) {
    if (name.substr(0, space) != known.name) continue;
    column->part = known.part;
    return space == std::string_view::npos || (column->is_list() && read_range(name.substr(space + 1), column));
  }
  return false;
}

}  // namespace anabranch::data
