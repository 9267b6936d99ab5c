// The rows of a table as packed samples: runs of rows column by column (data/table_columns.h). A run with a row that a
// reader would refuse is written row by row, and so are all if a share of the rows is asked for: both need the text of
// whole rows. Constant, so any number of threads may use one.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_head.h"
#include "data/table_columns.h"

namespace anabranch::data {

class TableRows {
 public:
  // InvalidArgument: the table lacks a column, or one of its columns cannot be what a feature makes of it.
  TableRows(const Settings& settings, const ArrowSchema& table, const std::string& path);

  // Call it before parse(), for each batch and the one before it, or null.
  void prepare(TableBatch* batch, const TableBatch* last) const {
    if (columns_) columns_->prepare(batch, last);
  }
  // Appends the samples of rows of a batch to *out, and the errors of the others.
  void parse(const TableBatch& batch, int64_t begin, int64_t count, Block* out) const;

 private:
  struct Source {
    std::unique_ptr<ArrowType> type;  // null: no feature uses the column
    char split = 0;
    bool is_number = false;  // of a float column: all features take a number
    bool is_needed = false;  // by a feature that the program uses
  };
  struct Row;

  void add(const ColumnRule& rule, const ArrowSchema& table, const std::vector<std::string_view>& names,
           const std::string& path);
  void parse_row(const TableBatch& batch, int64_t row, Row* state, Block* out, RowWriter* writer) const;
  bool read(const TableBatch& batch, int64_t row, bool as_texts, Row* state) const;
  std::string_view joined(Row* state) const;
  bool write(const Row& state, RowWriter* writer) const;
  void refuse(Row* state, RowWriter* writer) const;

  const Settings::Share share_;
  const RowFormat format_;
  FileHeads heads_;
  const RowPlan plan_;
  FileHead head_;
  size_t share_column_ = 0;
  std::vector<Source> sources_;  // of each column of the table
  std::optional<TableColumns> columns_;
};

}  // namespace anabranch::data
