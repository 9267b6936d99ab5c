// Python's values of raw rows as the texts that a file would contain.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bind.h"
#include "data/row_inputs.h"

namespace anabranch::python {

// A number of JSON as its text, in which a double may lose digits, and Decimal the exponent.
struct JsonNumber {
  std::string text;
};

// Raw rows of a schema, from Python. The rows are a list of dicts, a dict of lists or arrays, a table of Arrow,
// or, if the schema numbers its columns, a list of lists.
class RowReader {
 public:
  explicit RowReader(data::RowInputs inputs);
  RowReader* clone() const { return new RowReader(inputs_.clone()); }

  // Replaces the rows. InvalidArgument names the row and the column whose value a file could not contain.
  void read(nb::handle rows);
  data::RowInputs& inputs() { return inputs_; }

 private:
  using Column = data::RowInputs::Column;

  void read_columns(nb::handle table);
  void read_row(nb::handle row);
  void read_fields(nb::handle row);
  nb::object of_column(nb::handle table, size_t column, bool is_dict) const;
  void add() { inputs_.add(texts_); }
  void set(size_t column, nb::handle value) { texts_[column] = text(column, value, &own_[column]); }
  std::string_view text(size_t column, nb::handle value, std::string* own) const;
  std::string_view list_text(size_t column, nb::handle value, std::string* own) const;
  std::string_view other_text(size_t column, nb::handle value, std::string* own) const;
  [[noreturn]] void refuse(size_t column, nb::handle value, const char* why) const;
  [[noreturn]] void lacks(size_t column, nb::handle row) const;
  std::string row_name() const { return "row " + std::to_string(inputs_.rows()); }

  data::RowInputs inputs_;
  std::vector<nb::object> keys_;         // of dicts, one per column
  std::vector<nb::object> spelled_;      // the same as text, as JSON has them
  std::vector<std::string> own_;         // memory of texts that no Python object holds
  std::vector<std::string_view> texts_;  // of the current row
};

}  // namespace anabranch::python
