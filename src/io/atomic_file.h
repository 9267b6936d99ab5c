// A file that appears as a whole or not at all: written under a temporary name beside its place, flushed to disk,
// renamed. Until commit() the old file is untouched; an AtomicFile that is dropped leaves nothing behind.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace anabranch::io {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);  // makes parent folders
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  void write(std::string_view data);
  void finish();  // all is written: to disk with it
  void commit();  // takes the place of the old file

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::string path_, temp_path_;
  int fd_ = -1;
};

// Finishes all files before the first one takes its place, then makes the new names durable.
void commit_all(std::vector<AtomicFile>* files);

}  // namespace anabranch::io
