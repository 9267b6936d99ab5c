// Files as a dependency, like the clock and the network, so that simulations decide what a crash leaves of them.
// Failures are errors of kind Unavailable or ResourceExhausted that name the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace anabranch::ps {

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  virtual void write(std::string_view data) = 0;  // at the end
  virtual void sync() = 0;                        // written data survives a power failure
};

// A file that is read from start to end.
class DiskSource {
 public:
  virtual ~DiskSource() = default;
  virtual uint64_t size() const = 0;  // when it was opened
  // The next bytes: fewer than `bytes` only at the end.
  virtual size_t read(void* to, size_t bytes) = 0;
};

// Keeps others out of a folder for as long as it lives, at most as long as its process.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

class Disk {
 public:
  virtual ~Disk() = default;
  // Locks an existing folder against all processes; the lock shows `holder` to the others. Unavailable names the
  // present holder. Null: this file system has no locks.
  virtual std::unique_ptr<DiskLock> lock(const std::string& folder, const std::string& holder) = 0;
  virtual std::unique_ptr<DiskFile> create(const std::string& path) = 0;  // creates or truncates it
  virtual bool exists(const std::string& path) const = 0;
  virtual std::unique_ptr<DiskSource> open(const std::string& path) const = 0;
  // names, sorted; none if the folder does not exist
  virtual std::vector<std::string> list(const std::string& folder) const = 0;
  virtual void make_folder(const std::string& path) = 0;  // and its parents
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;  // a file, or a folder with its contents
  virtual void sync_folder(const std::string& path) = 0;
};

// The disk of this machine.
Disk& real_disk();

}  // namespace anabranch::ps
