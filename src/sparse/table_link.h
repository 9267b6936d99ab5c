// A link of a chain of files of one table, little endian: its head, the name of the table, then the keys that are gone
// (int64, ascending) and rows in the format of table files, in no particular order; at last its foot. A whole link has
// all rows and may start a chain. Any other has the rows that have changed since the link before it, which it names by
// number and checksum. The whole link and the other link of one moment have the same number.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "io/atomic_file.h"
#include "io/regular_file.h"
#include "sparse/link_rows.h"
#include "sparse/table_file.h"

namespace anabranch::sparse {

// The checksums of the links of one moment; 0: there is none.
struct LinkSums {
  uint64_t changes = 0, whole = 0;
};

// The position of a link in a run.
struct LinkPlace {
  uint64_t run[2] = {0, 0};           // a random number
  int64_t number = 0, previous = -1;  // ascending; previous -1: there is none
  LinkSums previous_sums;
  uint64_t whole = 0;  // 1: a whole link
};

struct LinkHead {
  char magic[8];
  LinkPlace place;
  int64_t name_bytes;
  RowForm form;
  TableHeader table;  // its number of rows is in the foot
};

struct LinkCounts {
  int64_t gone, rows;
};

struct LinkFoot {
  LinkCounts counts;
  uint64_t checksum;  // of all before it
  char magic[8];
};

template <class T> std::string_view view_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

class LinkWriter {
 public:
  LinkWriter(io::AtomicFile* file, const std::string& name, const LinkPlace& place, const TableHeader& table,
             std::span<const int64_t> gone, RowForm form = RowForm::kTraining);
  void add_rows(std::string_view rows);  // in the form of the link
  uint64_t end();                        // its checksum

 private:
  void write(std::string_view bytes);

  io::AtomicFile* const file_;
  const size_t row_bytes_;
  const int64_t gone_;
  uint64_t row_bytes_written_ = 0;
  Checksum sum_;
};

// A link that is whole: the constructor reads all of it.
class LinkReader {
 public:
  // NotFound; InvalidArgument: it is not a link, is damaged, or was cut short.
  explicit LinkReader(const std::string& path);

  static bool is_link(const std::string& path);
  // From its head alone; nothing else is checked.
  static LinkPlace place_of(const std::string& path);

  const std::string& path() const { return path_; }
  const LinkPlace& place() const { return head_.place; }
  const std::string& name() const { return name_; }
  const TableHeader& table() const { return head_.table; }
  int64_t gone() const { return foot_.counts.gone; }
  int64_t rows() const { return foot_.counts.rows; }
  uint64_t checksum() const { return foot_.checksum; }

  // Reads the link again: the keys that are gone, then its rows as those of a table's file, in parts. Both are checked
  // once more: at the end it throws if the file has changed.
  template <class Gone, class Rows> void each(Gone&& use_gone, Rows&& use_rows) const;

 private:
  static constexpr size_t kPartBytes = 1 << 20;

  [[noreturn]] void fail(const std::string& why) const;
  void read_head(io::RegularFile* file);
  size_t row_bytes() const;  // of a row in the link
  // fn(bytes) for `bytes` of the file, in parts of whole items.
  template <class Fn> void each_part(io::RegularFile* file, uint64_t bytes, size_t item, Checksum* sum, Fn&& fn) const;

  const std::string path_;
  std::string start_;  // head and name
  LinkHead head_{};
  LinkFoot foot_{};
  std::string name_;
};

template <class Fn>
void LinkReader::each_part(io::RegularFile* file, uint64_t bytes, size_t item, Checksum* sum, Fn&& fn) const {
  std::vector<char> part(std::min<uint64_t>(bytes, std::max<size_t>(kPartBytes / item, 1) * item));
  while (bytes > 0) {
    const size_t take = std::min<uint64_t>(bytes, part.size());
    if (file->read(part.data(), take) != take) fail("it became shorter while it was read");
    sum->add({part.data(), take});
    fn(std::string_view(part.data(), take));
    bytes -= take;
  }
}

template <class Gone, class Rows> void LinkReader::each(Gone&& use_gone, Rows&& use_rows) const {
  io::RegularFile file(path_);
  Checksum sum;
  each_part(&file, start_.size(), 1, &sum, [](std::string_view) {});
  each_part(&file, static_cast<uint64_t>(gone()) * sizeof(int64_t), sizeof(int64_t), &sum, use_gone);
  std::string plain;
  each_part(&file, static_cast<uint64_t>(rows()) * row_bytes(), row_bytes(), &sum, [&](std::string_view part) {
    if (head_.form == RowForm::kTraining) return use_rows(part);
    decode_rows(head_.form, head_.table.width, part, &plain);
    use_rows(std::string_view(plain));
  });
  sum.add(view_of(foot_.counts));
  if (sum.value() != foot_.checksum) fail("it has changed while it was read");
}

}  // namespace anabranch::sparse
