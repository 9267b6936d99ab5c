// A file that is mapped for reading: its pages are shared with all processes that map it, and are read when they are
// first used. The file may be removed or replaced meanwhile. It must not be cut short: a process that reads pages which
// the file has lost is killed.
#pragma once
#include <string>
#include <string_view>

namespace anabranch::io {

class MappedFile {
 public:
  // Locks the file for sharing as long as the object exists. NotFound; Unavailable if it cannot be opened or mapped, or
  // is locked; InvalidArgument if it is not a regular file, or belongs to another user.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, bytes_}; }

 private:
  void open(const std::string& path);

  int fd_ = -1;
  const char* data_ = nullptr;
  size_t bytes_ = 0;
};

// Excludes other processes, and other objects of this one, for as long as it exists.
class FileLock {
 public:
  // Makes the file if there is none. `waits`: until others have released it; else taken() says whether they have.
  FileLock(const std::string& path, bool waits);
  ~FileLock();
  FileLock(const FileLock&) = delete;

  bool taken() const { return taken_; }

 private:
  int fd_ = -1;
  bool taken_ = false;
};

// Removes a file unless a MappedFile has it open. Whether it is gone.
bool remove_unless_mapped(const std::string& path);

}  // namespace anabranch::io
