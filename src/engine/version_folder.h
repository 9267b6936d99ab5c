// The versions in a folder of checkpoints (anabranch.Checkpoints), as models that follow the folder read them. Another
// process, or a tool that copies, may write to the folder meanwhile. Any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace anabranch {

// The file of a checkpoint's variables, and the start of the names of its tables' files.
constexpr const char* kVersionValues = "values";

// The status of a checkpoint.
struct VersionStatus {
  int64_t step = 0;
  double trained_at = 0;                   // seconds since 1970; 0: unknown
  std::vector<std::string> dense, tables;  // names of its variables
  std::string run;                         // its tables are parts of chains of this run; empty: they are whole files
};

class VersionFolder {
 public:
  explicit VersionFolder(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::vector<int64_t> numbers() const;  // ascending; empty if there is no folder
  std::string path(int64_t number) const;
  // The version that all followers use; none: the newest. InvalidArgument: the file cannot be read.
  std::optional<int64_t> pinned() const;
  // The status of a version, after sizes and checksums of its files have been verified. Links of tables check
  // themselves when they are read; here only the checksum at their end is compared. NotFound, InvalidArgument: the
  // message names a file that is missing or damaged.
  VersionStatus read(int64_t number) const;
  // Changes if a file in the versions after `after` up to `number` has changed.
  std::string signature(int64_t after, int64_t number) const;

  std::string table_path(int64_t number, const std::string& table) const;  // of all rows
  // The files of a table's chain up to a version, from the one with all rows on. NotFound, InvalidArgument: a link is
  // missing.
  std::vector<std::string> chain(int64_t number, const std::string& table) const;
  // The files of the changes from version `after` to version `number`; empty if they do not lead there.
  std::vector<std::string> changes(int64_t after, int64_t number, const std::string& table) const;

 private:
  const std::string root_;
};

}  // namespace anabranch
