// Rows of a table, written as packed samples column by column: a run of rows at a time, each slot for all of them.
// Crosses and lists, whose values depend on several columns or differ in number, are written row by row in between.
// The bits are those of RowPlan::write. Constant; each thread has its own Scratch.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/column_values.h"

namespace anabranch::data {

// A column of a table. Null: no feature uses it.
struct TableColumn {
  const ArrowType* type = nullptr;
  char split = 0;  // of lists
};

// Rows of a table.
struct TableBatch {
  TableBatch() = default;
  TableBatch(const TableBatch&) = delete;
  ~TableBatch() {
    if (array.release) array.release(&array);
  }

  const ArrowArray& column(size_t i) const { return *array.children[places.empty() ? i : places[i]]; }

  ArrowArray array{};
  std::vector<int64_t> places;  // of the fields of the plan among the columns; empty: they are the columns
  std::vector<std::shared_ptr<ColumnValues::Memo>> memos;  // of TableColumns::prepare
};

class TableColumns {
 public:
  struct Scratch {
    explicit Scratch(size_t columns) : fields(columns), own(columns) {}

    ValueRun run;
    std::vector<Field> fields;
    std::vector<std::string> own;
    std::vector<std::string_view> items;  // of lists
    std::vector<uint32_t> words;          // of the slots that are written row by row, slot by slot
    std::vector<uint32_t> sizes;          // of each of them, in words
    uint32_t* rows[ValueRun::kRows];
    alignas(16) float tile[4][ValueRun::kRows];  // numbers of the last columns, until there are four
  };

  // `columns`: of the fields of the plan. The arguments and the types must outlive it.
  TableColumns(const RowPlan& plan, std::span<const size_t> places, std::vector<TableColumn> columns);

  const ArrowType& type(size_t field) const { return *columns_[field].type; }
  // Call it before write(). Results for the entries of dictionaries that `last` (may be null) has, too, are kept.
  void prepare(TableBatch* batch, const TableBatch* last) const;
  // At most ValueRun::kRows rows, counted with the offset of the batch. False, and nothing is written: a row is
  // refused.
  bool write(const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch, RowWriter* writer) const;

 private:
  struct Slot {
    const RowPlan::SlotPlan* plan;
    std::vector<ColumnValues> values;  // of its columns; empty: the slot is written row by row
    std::vector<size_t> fields;        // of them, or those that the rows need
    bool hashes_lists = false;         // of texts, in one column
  };

  bool write_rows(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch,
                  int64_t* missing) const;
  bool write_lists(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch) const;
  bool write_columns(const Slot& slot, const TableBatch& batch, int64_t row, int64_t count, Scratch* scratch,
                     size_t* offset, const std::shared_ptr<ColumnValues::Memo>** memo) const;
  void put_column(size_t k, const Slot& slot, int64_t count, size_t offset, Scratch* scratch) const;
  void place_rows(int64_t count, Scratch* scratch, RowWriter* writer) const;

  const std::span<const size_t> places_;
  const std::vector<TableColumn> columns_;
  std::vector<Slot> slots_;
  size_t fixed_words_ = 0;  // of a row, in slots that are written column by column
  size_t by_row_ = 0;       // number of the others
};

// Sets *field to a value of a column: its number if as_number and it has one, otherwise its text. False: an item of a
// list contains the separator; the text is empty then.
bool set_field(const ArrowType& type, const ArrowArray& array, int64_t row, bool as_number, char split,
               std::string* own, Field* field);

}  // namespace anabranch::data
