#include "data/row_texts.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "data/pair_columns.h"

namespace anabranch::data {
namespace {

constexpr auto kNone = std::string_view::npos;

// Items with one space between two.
bool has_items(std::string_view text) {
  return text.empty() || (text.front() != ' ' && text.back() != ' ' && text.find("  ") == kNone);
}

int64_t items_of(std::string_view text) { return text.empty() ? 0 : std::count(text.begin(), text.end(), ' ') + 1; }

PairColumn pair_of(const RowInputs::Column& column) {
  PairColumn kind;
  pair_column(column.number, column.name, &kind);
  return kind;
}

}  // namespace

bool RowTexts::check(size_t* at) const {
  if (lines == Lines::kMultiSlot) return check_slots(at);
  for (size_t i = 0; i < values.size(); ++i) check_pair(i);
  check_lists();
  return true;
}

bool RowTexts::check_slots(size_t* at) const {
  const auto place = [&](size_t i) { return std::find(slots.begin(), slots.end(), columns[i].name); };
  *at = values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!check_slot(i) && (*at == values.size() || place(i) < place(*at))) *at = i;
  }
  return *at == values.size();
}

// An item of numbers without text is a missing one.
bool RowTexts::check_slot(size_t at) const {
  const bool text = columns[at].is_text;
  if (text && values[at].find('\t') != kNone) refuse(at, "a text must not contain a tab, as a value of a line cannot");
  if (columns[at].one >= 0) return values[at].find_first_of(" \t") == kNone;
  if (text && !has_items(values[at])) refuse(at, "a value of the list is empty, which a line cannot contain");
  return true;
}

void RowTexts::check_pair(size_t at) const {
  const PairColumn kind = pair_of(columns[at]);
  if (kind.part == PairColumn::Part::kIndices) return check_indices(at);
  if (!columns[at].is_text) return;
  if (values[at].find_first_of(kind.is_list() ? "\t\r#" : " \t\r#") != kNone) {
    refuse(at, "a text must not contain blanks or #, because a value of a line cannot");
  }
  if (kind.part == PairColumn::Part::kLabel && values[at].find(':') != kNone) {
    refuse(at, "a label must not contain a colon");
  }
  if (kind.is_list() && !has_items(values[at])) refuse(at, "a value of the list is empty, which a line cannot contain");
}

void RowTexts::check_indices(size_t at) const {
  const PairColumn kind = pair_of(columns[at]);
  if (!has_items(values[at])) refuse(at, "a value of the list is empty, which a line cannot contain");
  for (std::string_view rest = values[at]; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view text = rest.substr(0, end);
    uint64_t index = 0;
    if (!read_index(&text, &index) || text.size() != end) refuse(at, "an index must be an integer in digits, from 0");
    if (!kind.takes(index)) refuse(at, "an index is outside of the range of the column");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// The pairs of a range have as many indices as values.
void RowTexts::check_lists() const {
  for (size_t i = 0; i < values.size(); ++i) {
    const PairColumn indices = pair_of(columns[i]);
    if (indices.part != PairColumn::Part::kIndices) continue;
    for (size_t k = 0; k < values.size(); ++k) {
      const PairColumn of = pair_of(columns[k]);
      if (of.part != PairColumn::Part::kValues || std::tie(of.low, of.high) != std::tie(indices.low, indices.high)) {
        continue;
      }
      AB_CHECK(items_of(values[i]) == items_of(values[k]), InvalidArgument,
               "row {}: column {} must have as many items as column {}, got {} and {}", row, columns[i].shown(),
               columns[k].shown(), items_of(values[i]), items_of(values[k]));
    }
  }
}

void RowTexts::refuse(size_t at, const char* why) const {
  AB_THROW(InvalidArgument, "row {}: column {}: {}, got {}", row, columns[at].shown(), why, shown_start(values[at]));
}

}  // namespace anabranch::data
