#include "io/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace anabranch::io {

RegularFile::RegularFile(const std::string& path) : path_(path) {
  AB_CHECK(path.find('\0') == std::string::npos, InvalidArgument, "the name of a file must not have a zero byte");
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  AB_CHECK(fd_ >= 0 || (errno != ENOENT && errno != ENOTDIR), NotFound, "file {} does not exist", path);
  AB_CHECK(fd_ >= 0, Unavailable, "cannot open {}: {}", path, std::strerror(errno));
  struct stat info {};
  const bool regular = fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) close(fd_);
  AB_CHECK(regular, InvalidArgument, "{} is not a regular file", path);
  size_ = static_cast<uint64_t>(info.st_size);
}

RegularFile::~RegularFile() { close(fd_); }

size_t RegularFile::read(void* to, size_t count) {
  size_t have = 0;
  while (have < count) {
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + have, count - have);
    if (n < 0 && errno == EINTR) continue;
    AB_CHECK(n >= 0, Unavailable, "cannot read {}: {}", path_, std::strerror(errno));
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

}  // namespace anabranch::io
