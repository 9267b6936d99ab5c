#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"

namespace anabranch::io {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

void sync_folder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  AB_CHECK(fd >= 0, Unavailable, "cannot open the folder {}: {}", folder, std::strerror(errno));
  const int failed = fsync(fd);
  const int error = errno;
  close(fd);
  // Some file systems cannot flush folders and say EINVAL: there is nothing more that we could do.
  AB_CHECK(failed == 0 || error == EINVAL, Unavailable, "cannot flush the folder {}: {}", folder, std::strerror(error));
}

void make_folders(const std::string& folder) {
  std::error_code unreadable;  // then mkdir says why
  if (folder.empty() || fs::is_directory(folder, unreadable)) return;
  const std::string above = folder_of(folder);
  if (above != folder) make_folders(above);
  AB_CHECK(mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST, Unavailable, "cannot make the folder {}: {}", folder,
           std::strerror(errno));
  sync_folder(above);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<uint64_t> serial{0};
  const std::string folder = folder_of(path_);
  make_folders(folder);
  // The name says nothing of the file, so that one of the longest allowed name can be written, too.
  do {
    temp_path_ = fmt::format("{}/.anabranch-{}-{}.tmp", folder, getpid(), serial++);
    fd_ = open(temp_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) {
    const int error = errno;
    temp_path_.clear();
    errno = error;
    fail("create");
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temp_path_(std::move(other.temp_path_)), fd_(other.fd_) {
  other.fd_ = -1;
  other.temp_path_.clear();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temp_path_.empty()) unlink(temp_path_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(full ? ErrorKind::kResourceExhausted : ErrorKind::kUnavailable,
              fmt::format("cannot {} {}: {}", doing, path_, std::strerror(error)));
}

void AtomicFile::write(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    data.remove_prefix(static_cast<size_t>(n));
  }
}

void AtomicFile::finish() {
  if (fd_ < 0) return;
  if (fsync(fd_) != 0) fail("flush");
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) fail("close");
}

void AtomicFile::commit() {
  finish();
  if (rename(temp_path_.c_str(), path_.c_str()) != 0) fail("replace");
  temp_path_.clear();
}

void commit_all(std::vector<AtomicFile>* files) {
  for (auto& file : *files) file.finish();
  std::set<std::string> folders;
  for (auto& file : *files) {
    file.commit();
    folders.insert(folder_of(file.path()));
  }
  for (const auto& folder : folders) sync_folder(folder);
}

}  // namespace anabranch::io
