// Raw rows, as values of named columns, to the inputs of a model: what a reader does with the lines of a file, without
// a file. The bits are the reader's, because both apply one RowPlan. For one thread at a time; clones share the plan.
//
//   RowInputs rows(schema_text, slots);    // one slot per input of the model
//   rows.clear();
//   rows.add({"2.5", "red"});              // in the order of columns()
//   predictor.run(rows.tensors());
//
// In the steady state, with rows of the same lengths, nothing is allocated.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "data/block.h"
#include "data/row_format.h"
#include "data/table_columns.h"

namespace anabranch::data {

class RowInputs {
 public:
  struct Column {
    std::string name;         // of the header; empty: by number
    int64_t number = -1;      // from 0
    bool is_text = false;     // a feature takes its text, so 7 and 7.0 differ
    char split = 0;           // of lists
    bool two_splits = false;  // features split it in different ways, so that a list has no single text
    int32_t one = -1;         // the slot of the first feature that does not split it at spaces
    bool optional = false;    // a row may lack it: a pair of a libsvm line
    std::string shown() const { return number < 0 ? name : std::to_string(number); }
  };

  static constexpr const char* kTwoSplits = "features split the column in different ways, so a list has no single text";

  // InvalidArgument: the text is not a schema (data/schema_text.h), or lacks a slot or gives it another dtype or size.
  RowInputs(const std::string& schema, Schema slots);
  RowInputs(RowInputs&&) noexcept;
  ~RowInputs();
  RowInputs clone() const;

  const std::vector<Column>& columns() const;  // those that the slots need
  const Schema& slots() const;
  Lines lines() const;       // of the files that the schema describes
  bool takes_lists() const;  // rows may be lists of fields by position

  void clear();
  // A row: the texts of columns(), as they are in a file, without quotes; empty: missing. InvalidArgument, which names
  // the row, the column and the reason, if a reader would reject it, or if no line of a file could hold it.
  void add(std::span<const std::string_view> values);
  int64_t rows() const;

  // Rows of a table, whose fields are columns(): TableColumns of these types, and rows as add() adds their texts.
  // False, and nothing is added: a row is refused, or may be, so add() must take them one by one.
  TableColumns table(std::vector<TableColumn> types) const;
  bool add(const TableColumns& table, const TableBatch& batch, int64_t row, int64_t count,
           TableColumns::Scratch* scratch);

  // One per slot, valid until the next call.
  const std::vector<Tensor>& tensors();

 private:
  struct Shared;
  struct State;
  explicit RowInputs(std::shared_ptr<const Shared> shared);
  void check_texts(std::span<const std::string_view> values) const;
  void check_lines(std::span<const std::string_view> values) const;
  [[noreturn]] void refuse(size_t field, int32_t slot, BadReason reason) const;

  std::shared_ptr<const Shared> shared_;
  std::unique_ptr<State> state_;
};

}  // namespace anabranch::data
