// The values of one column of a table after a transform, for a run of rows: each step is a loop over the run, and a
// text of a dictionary is transformed once. The bits are those of Transform::apply for each row. Constant; each thread
// has its own ValueRun.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrow.h"
#include "data/row_plan.h"

namespace anabranch::data {

// Results of a run, and memory for the way there.
struct ValueRun {
  static constexpr int64_t kRows = 512;
  float numbers[kRows];
  uint64_t ids[kRows];
  int64_t filled = 0;  // missing values that got one, added up

  uint8_t missing[kRows];
  int64_t integers[kRows];
  std::string_view texts[kRows];
};

class ColumnValues {
 public:
  // Results for the entries of a dictionary, and at the end for null. Threads may share one: they find the same
  // results.
  class Memo {
   public:
    Memo(const ArrowArray& column, int64_t rows);  // rows of the batch

   private:
    friend class ColumnValues;
    enum State : uint8_t { kUnknown, kGood, kFilled };
    std::vector<std::atomic<State>> states_;  // empty: none, because it would be much larger than the batch
    std::unique_ptr<std::atomic<uint64_t>[]> values_;
  };

  // `plan` has no list and is not a cross; both must outlive it. The salt is that of the column.
  ColumnValues(const ArrowType& type, const RowPlan::SlotPlan& plan, uint64_t salt);

  // At most ValueRun::kRows rows: run->numbers, or ids. False if a value is refused.
  bool read(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const {
    return (this->*read_)(column, row, count, memo, run);
  }

 private:
  using Read = bool (ColumnValues::*)(const ArrowArray&, int64_t, int64_t, Memo*, ValueRun*) const;

  Read chosen() const;
  bool read_numbers(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_integers(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_spelled(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_hashes(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_entries(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_texts(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool read_ranged(const ArrowArray& column, int64_t row, int64_t count, Memo* memo, ValueRun* run) const;
  bool is_ranged() const;
  bool apply(std::string_view text, Cell* cell) const;
  bool learn(const ArrowArray& column, size_t entry, Memo* memo) const;
  void put(const Cell& cell, int64_t i, ValueRun* run) const;

  const ArrowType& type_;
  const RowPlan::SlotPlan& plan_;
  const uint64_t salt_;
  const Read read_;
};

}  // namespace anabranch::data
