// The first line of a file of columns: how many fields its lines have, and where its named columns are. Threads that
// read several files may share one FileHeads.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "data/row_parser.h"

namespace anabranch::data {

struct RowFormat;
struct ColumnRef;

class FileHeads {
 public:
  explicit FileHeads(const RowFormat& format);

  // Adds columns, whose positions follow those of earlier ones in FileHead::columns; returns the index of the first
  // one. numbers: they hold numbers, so that a header does not.
  size_t add(const std::vector<ColumnRef>& columns, bool numbers);
  // For the fields of the first line. InvalidArgument, which shows them, if a header lacks a name, holds numbers, or
  // differs from that of another file whose columns are given by number.
  FileHead head(const std::vector<std::string_view>& fields, const std::string& path) const;

  struct Column {
    int64_t number;  // -1: by name
    std::string name;
    bool is_number;
  };
  const std::vector<Column>& columns() const { return columns_; }  // in the order of FileHead::columns
  // Each of them once, in *columns; returns where each of columns() is there.
  std::vector<size_t> distinct(std::vector<Column>* columns) const;

 private:
  size_t position(const Column& column, const std::vector<std::string_view>& fields, const std::string& path) const;
  void check_names(const std::vector<std::string_view>& fields, const std::string& path) const;
  void compare(const std::string& names, const std::string& path) const;

  std::string other_format(const std::vector<std::string_view>& fields) const;

  bool header_, ragged_;
  char separator_;
  std::vector<Column> columns_;
  mutable std::mutex mutex_;
  mutable std::string first_names_, first_path_;  // of the file whose header was read first
};

}  // namespace anabranch::data
