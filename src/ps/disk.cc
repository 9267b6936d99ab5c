#include "ps/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "io/regular_file.h"

namespace anabranch::ps {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* doing, const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(full ? ErrorKind::kResourceExhausted : ErrorKind::kUnavailable,
              fmt::format("cannot {} {}: {}", doing, path, std::strerror(error)));
}

class RealFile final : public DiskFile {
 public:
  explicit RealFile(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("create", path_, errno);
  }
  ~RealFile() override { close(fd_); }
  RealFile(const RealFile&) = delete;
  void write(std::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = ::write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write", path_, errno);
      data.remove_prefix(static_cast<size_t>(n));
    }
  }
  void sync() override {
    if (fdatasync(fd_) != 0) fail("flush", path_, errno);
  }

 private:
  const std::string path_;
  const int fd_;
};

class RealSource final : public DiskSource {
 public:
  explicit RealSource(const std::string& path) : file_(path) {}
  uint64_t size() const override { return file_.size(); }
  size_t read(void* to, size_t bytes) override { return file_.read(to, bytes); }

 private:
  io::RegularFile file_;
};

constexpr std::chrono::milliseconds kLockWait{2000}, kLockPause{50};

class RealLock final : public DiskLock {
 public:
  explicit RealLock(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("create", path_, errno);
  }
  ~RealLock() override { close(fd_); }
  RealLock(const RealLock&) = delete;

  // False: the file system has no locks. A holder that was killed may take a moment to end.
  bool take(const std::string& folder) {
    const auto end = std::chrono::steady_clock::now() + kLockWait;
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) return false;
      if (errno != EWOULDBLOCK && errno != EINTR) fail("lock", path_, errno);
      AB_CHECK(std::chrono::steady_clock::now() < end, Unavailable, "the folder {} is in use by {}", folder, holder());
      std::this_thread::sleep_for(kLockPause);
    }
    return true;
  }
  // Information for people: what counts is the lock.
  void show(const std::string& holder) {
    if (ftruncate(fd_, 0) != 0 || pwrite(fd_, holder.data(), holder.size(), 0) < 0) fail("write", path_, errno);
  }

 private:
  std::string holder() const {
    std::array<char, 512> text{};
    const ssize_t n = pread(fd_, text.data(), text.size(), 0);
    return n > 0 ? std::string(text.data(), static_cast<size_t>(n)) : "another process";
  }
  const std::string path_;
  const int fd_;
};

class RealDisk final : public Disk {
 public:
  std::unique_ptr<DiskLock> lock(const std::string& folder, const std::string& holder) override {
    auto made = std::make_unique<RealLock>(folder + "/lock");
    if (!made->take(folder)) return nullptr;
    made->show(holder);
    return made;
  }
  std::unique_ptr<DiskFile> create(const std::string& path) override { return std::make_unique<RealFile>(path); }
  bool exists(const std::string& path) const override {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }
  std::unique_ptr<DiskSource> open(const std::string& path) const override {
    return std::make_unique<RealSource>(path);
  }
  std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> out;
    std::error_code none;
    for (fs::directory_iterator it(folder, none), end; !none && it != end; it.increment(none)) {
      out.push_back(it->path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  void make_folder(const std::string& path) override {
    std::error_code failed;
    fs::create_directories(path, failed);
    if (failed) fail("make the folder", path, failed.value());
  }
  void rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) fail("rename", from, errno);
  }
  void remove(const std::string& path) override {
    std::error_code failed;
    fs::remove_all(path, failed);
    if (failed) fail("remove", path, failed.value());
  }
  void sync_folder(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail("open the folder", path, errno);
    const int failed = fsync(fd), error = errno;
    close(fd);
    // EINVAL: the folder cannot be flushed at all
    if (failed != 0 && error != EINVAL) fail("flush the folder", path, error);
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}

}  // namespace anabranch::ps
