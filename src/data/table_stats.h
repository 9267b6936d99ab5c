// Statistics of files of columns (CSV, TSV), in one pass and bounded memory. Lines are cut into fields by the code of
// the reader, so that a malformed line is malformed for both. For one thread at a time.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "data/column_stats.h"

namespace anabranch::data {

class TableStats {
 public:
  static constexpr size_t kShownBad = 5;

  TableStats(char separator, bool header, bool ragged) : separator_(separator), header_(header), ragged_(ragged) {}

  // Adds a file, which may be compressed. InvalidArgument if its header, or without one its number of fields, differs
  // from that of the files before. `idle` is called now and then; an exception ends the work.
  void add(const std::string& path, const std::function<void()>& idle = {});

  const std::vector<ColumnStats>& columns() const { return columns_; }  // of the first line of the first file
  int64_t rows() const { return rows_; }                                // well-formed
  int64_t bad() const { return bad_; }
  const std::vector<std::string>& shown_bad() const { return shown_bad_; }  // the first ones, with their positions

 private:
  class Parser;
  void open(const std::vector<std::string>& names, const std::string& path);

  char separator_;
  bool header_, ragged_;
  std::vector<ColumnStats> columns_;
  int64_t rows_ = 0, bad_ = 0;
  std::vector<std::string> shown_bad_;
};

}  // namespace anabranch::data
