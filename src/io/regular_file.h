// A file that is open for reading and is a regular file: opening a named pipe would wait for a writer that may never
// come.
#pragma once
#include <cstdint>
#include <string>

namespace anabranch::io {

class RegularFile {
 public:
  // NotFound; Unavailable if it cannot be opened; InvalidArgument if it is not a regular file.
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;

  uint64_t size() const { return size_; }  // when it was opened
  // The next bytes: fewer than `count` only at the end of the file.
  size_t read(void* to, size_t count);

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace anabranch::io
