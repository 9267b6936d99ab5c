// Files that hold tables (Parquet, Arrow) as inputs of a data set: a library opens them and decodes batches of rows,
// and their values become the texts that a line of a file would have. The same RowPlan then gives the same bits.
#pragma once
#include <memory>
#include <string>

#include "data/arrow.h"
#include "data/input.h"

namespace anabranch::data {

// An open file, for one thread at a time.
class TableFile {
 public:
  virtual ~TableFile() = default;
  virtual const ArrowSchema& schema() const = 0;
  virtual bool next(ArrowArray* batch) = 0;  // false at the end; the caller releases the batch
  virtual int64_t rows() const = 0;          // of the file
};

// "Parquet" or "Arrow" by the first bytes of a file; null for text, and for a file that cannot be read.
const char* table_kind(const std::string& path);

// InvalidArgument if the settings are not for tables, or the file lacks a column.
std::unique_ptr<Input> table_input(const Settings& settings, const std::string& path, const char* kind);

}  // namespace anabranch::data
