#include "data/column_values.h"

#include <bit>
#include <charconv>
#include <iterator>

namespace anabranch::data {
namespace {

constexpr int64_t kMostEntries = 16;  // of a dictionary, for each row of a batch

}  // namespace

ColumnValues::Memo::Memo(const ArrowArray& column, int64_t rows)
    : states_(column.dictionary && column.dictionary->length <= kMostEntries * rows
                  ? static_cast<size_t>(column.dictionary->length) + 1
                  : 0),
      values_(std::make_unique_for_overwrite<std::atomic<uint64_t>[]>(states_.size())) {}

ColumnValues::ColumnValues(const ArrowType& type, const RowPlan::SlotPlan& plan, uint64_t salt)
    : type_(type), plan_(plan), salt_(salt), read_(chosen()) {}

ColumnValues::Read ColumnValues::chosen() const {
  using Type = Transform::Type;
  const Type to = plan_.transform->type;
  const bool is_number = type_.is_plain_float() || type_.is_integer();
  const struct {
    bool fits;
    Read read;
  } ways[] = {{type_.is_dictionary(), &ColumnValues::read_entries},
              {is_number && to == Type::kNumber && !plan_.required, &ColumnValues::read_numbers},
              {type_.is_integer() && is_ranged(), &ColumnValues::read_ranged},
              {type_.is_integer() && to == Type::kInteger && !plan_.required, &ColumnValues::read_integers},
              {type_.is_integer() && plan_.only_hash && !plan_.required, &ColumnValues::read_spelled},
              {type_.is_text() && plan_.only_hash && !plan_.required, &ColumnValues::read_hashes}};
  for (const auto& way : ways) {
    if (way.fits) return way.read;
  }
  return &ColumnValues::read_texts;
}

bool ColumnValues::read_numbers(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const {
  if (!type_.numbers(column, row, count, run->numbers)) return read_texts(column, row, count, memo, run);
  return plan_.transform->apply({run->numbers, static_cast<size_t>(count)}, run->ids, &run->filled);
}

bool ColumnValues::read_integers(const ArrowArray& column, int64_t row, int64_t count, Memo* /*memo*/,
                                 ValueRun* run) const {
  type_.integers(column, row, count, run->integers, run->missing);
  Cell cell;
  for (int64_t i = 0; i < count; ++i) {
    const bool missing = run->missing[i];
    const bool positive = !missing && (type_.is_unsigned() || run->integers[i] >= 0);
    if (!plan_.transform->apply(static_cast<uint64_t>(run->integers[i]), positive, missing, &cell)) return false;
    put(cell, i, run);
  }
  return true;
}

// A label, for example. Its bounds are integers below 2^53, so comparing them as such gives the same result.
bool ColumnValues::is_ranged() const {
  const Transform& transform = *plan_.transform;
  return transform.type == Transform::Type::kInteger && !plan_.required && !type_.is_unsigned() &&
         transform.steps.size() == 1 && transform.steps[0].op == Step::Op::kRange;
}

bool ColumnValues::read_ranged(const ArrowArray& column, int64_t row, int64_t count, Memo* /*memo*/,
                               ValueRun* run) const {
  const Step& range = plan_.transform->steps[0];
  const auto low = static_cast<int64_t>(range.low), high = static_cast<int64_t>(range.high);
  type_.integers(column, row, count, run->integers, run->missing);
  bool good = true;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = run->integers[i];
    good &= !run->missing[i] && value >= low && value <= high;
    run->ids[i] = static_cast<uint64_t>(value);
  }
  return good;
}

// The hash of the digits that a file would have.
bool ColumnValues::read_spelled(const ArrowArray& column, int64_t row, int64_t count, Memo* /*memo*/,
                                ValueRun* run) const {
  type_.integers(column, row, count, run->integers, run->missing);
  char digits[24];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = run->integers[i];
    const char* const end = run->missing[i] ? digits
                            : type_.is_unsigned()
                                ? std::to_chars(digits, std::end(digits), static_cast<uint64_t>(value)).ptr
                                : std::to_chars(digits, std::end(digits), value).ptr;
    run->ids[i] = hashed_id({digits, static_cast<size_t>(end - digits)}, salt_, plan_.only_hash);
  }
  return true;
}

bool ColumnValues::read_hashes(const ArrowArray& column, int64_t row, int64_t count, Memo* /*memo*/,
                               ValueRun* run) const {
  type_.texts(column, row, count, run->texts);
  for (int64_t i = 0; i < count; ++i) run->ids[i] = hashed_id(run->texts[i], salt_, plan_.only_hash);
  return true;
}

bool ColumnValues::read_entries(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const {
  if (memo->states_.empty()) return read_texts(column, row, count, memo, run);
  type_.integers(column, row, count, run->integers, run->missing);
  const size_t null = memo->states_.size() - 1;
  for (int64_t i = 0; i < count; ++i) {
    const size_t entry = run->missing[i] ? null : static_cast<size_t>(run->integers[i]);
    Memo::State state = memo->states_[entry].load(std::memory_order_acquire);
    if (state == Memo::kUnknown) {
      if (!learn(column, entry, memo)) return false;
      state = memo->states_[entry].load(std::memory_order_relaxed);
    }
    run->ids[i] = memo->values_[entry].load(std::memory_order_relaxed);
    run->filled += state == Memo::kFilled;
  }
  if (plan_.is_float) {
    for (int64_t i = 0; i < count; ++i) run->numbers[i] = std::bit_cast<float>(static_cast<uint32_t>(run->ids[i]));
  }
  return true;
}

bool ColumnValues::learn(const ArrowArray& column, size_t entry, Memo* memo) const {
  std::string own;
  const bool null = entry + 1 == memo->states_.size();
  Cell cell;
  if (!apply(null ? std::string_view() : type_.entry(column, static_cast<int64_t>(entry), &own), &cell)) return false;
  memo->values_[entry].store(plan_.is_float ? std::bit_cast<uint32_t>(cell.number) : cell.id,
                             std::memory_order_relaxed);
  memo->states_[entry].store(cell.filled ? Memo::kFilled : Memo::kGood, std::memory_order_release);
  return true;
}

bool ColumnValues::read_texts(const ArrowArray& column, int64_t row, int64_t count, Memo* /*memo*/,
                              ValueRun* run) const {
  std::string own;
  Cell cell;
  for (int64_t i = 0; i < count; ++i) {
    if (!apply(type_.text(column, row + i, 0, &own), &cell)) return false;
    put(cell, i, run);
  }
  return true;
}

bool ColumnValues::apply(std::string_view text, Cell* cell) const {
  return !(plan_.required && text.empty()) && plan_.transform->apply(text, salt_, cell);
}

void ColumnValues::put(const Cell& cell, int64_t i, ValueRun* run) const {
  run->filled += cell.filled;
  if (plan_.is_float) {
    run->numbers[i] = cell.number;
  } else {
    run->ids[i] = cell.id;
  }
}

}  // namespace anabranch::data
