#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace anabranch::io {
namespace {

int lock(int fd, int how) {
  int failed = 0;
  do failed = flock(fd, how);
  while (failed != 0 && errno == EINTR);
  return failed;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  try {
    open(path);
  } catch (...) {
    if (fd_ >= 0) close(fd_);
    throw;
  }
}

// A link or a file of another user could be exchanged for one that is cut short.
void MappedFile::open(const std::string& path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  AB_CHECK(fd_ >= 0 || (errno != ENOENT && errno != ENOTDIR), NotFound, "file {} does not exist", path);
  AB_CHECK(fd_ >= 0, Unavailable, "cannot open {}: {}", path, std::strerror(errno));
  struct stat info {};
  AB_CHECK(fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0, InvalidArgument,
           "{} is not a regular file with contents", path);
  AB_CHECK(info.st_uid == geteuid(), InvalidArgument, "{} belongs to user {}, this process to user {}", path,
           info.st_uid, geteuid());
  AB_CHECK(lock(fd_, LOCK_SH | LOCK_NB) == 0, Unavailable, "cannot lock {}: {}", path, std::strerror(errno));
  const auto bytes = static_cast<size_t>(info.st_size);
  void* const at = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
  AB_CHECK(at != MAP_FAILED, Unavailable, "cannot map {}: {}", path, std::strerror(errno));
  data_ = static_cast<const char*>(at);
  bytes_ = bytes;
}

MappedFile::~MappedFile() {
  munmap(const_cast<char*>(data_), bytes_);
  close(fd_);
}

FileLock::FileLock(const std::string& path, bool waits) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  AB_CHECK(fd_ >= 0, Unavailable, "cannot open {}: {}", path, std::strerror(errno));
  taken_ = lock(fd_, LOCK_EX | (waits ? 0 : LOCK_NB)) == 0;
  if (taken_ || (!waits && errno == EWOULDBLOCK)) return;
  const int error = errno;
  close(fd_);
  AB_THROW(Unavailable, "cannot lock {}: {}", path, std::strerror(error));
}

FileLock::~FileLock() { close(fd_); }

bool remove_unless_mapped(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT;
  const bool gone = lock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(path.c_str()) == 0;
  close(fd);
  return gone;
}

}  // namespace anabranch::io
