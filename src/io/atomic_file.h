// A file that appears whole or not at all: written under a temporary name in the same folder, flushed to disk, renamed.
// Until commit() the old file is untouched; an AtomicFile that is destroyed before that leaves no file. Temporary files
// of a killed process are removed by the next FileSet that writes to the folder.
#pragma once
#include <deque>
#include <set>
#include <string>
#include <string_view>

namespace anabranch::io {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // makes parent folders
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  void write(std::string_view data);
  void write_at_begin(std::string_view data);  // over what stands there: what was not known before the rest
  void finish();                               // all is written: to disk with it
  void commit();                               // replaces the old file
  void keep_old();  // so that restore() can give the old file, or its absence, back after commit()
  void restore() noexcept;

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, temp_path_, old_path_;
  bool replaced_ = false;
  int fd_ = -1;
};

// Files that take their places together: all are on disk before the first one does, and when one of them cannot, those
// before it give way again.
class FileSet {
 public:
  FileSet() = default;
  FileSet(const FileSet&) = delete;

  // InvalidArgument when the set has a file of this path. The file added before is finished: one is open at a time.
  AtomicFile& add(const std::string& path);
  void commit();  // the set is empty then, whether or not it throws
  void drop();    // leaves the old files and nothing else

 private:
  void replace_all();

  std::deque<AtomicFile> files_;
  std::set<std::string> paths_, folders_;
};

// Removes temporary files of killed processes from a folder.
void remove_stale(const std::string& folder);

}  // namespace anabranch::io
