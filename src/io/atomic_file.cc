#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/error.h"

namespace anabranch::io {
namespace {

namespace fs = std::filesystem;

constexpr time_t kOldS = 24 * 3600;

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

// Numbers of processes mean something on one host, within one namespace of them.
uint64_t where_processes_are() {
  static const uint64_t hash = [] {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    struct stat space {};
    uint64_t h = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
    for (const char* c = host; *c; ++c) h = (h ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
    return h;
  }();
  return hash;
}

// The name says nothing of the file, so that one of the longest allowed name can be written, too.
std::string temporary_name(const std::string& folder) {
  static std::atomic<uint64_t> serial{0};
  return fmt::format("{}/.anabranch-{:x}-{}-{}.tmp", folder, where_processes_are(), getpid(), serial++);
}

bool is_stale(const fs::path& path) {
  unsigned long long where = 0, serial = 0;
  int pid = 0, end = 0;
  const std::string name = path.filename().string();
  const int found = std::sscanf(name.c_str(), ".anabranch-%llx-%d-%llu.tmp%n", &where, &pid, &serial, &end);
  if (found != 3 || static_cast<size_t>(end) != name.size() || pid <= 0) return false;
  if (where == where_processes_are()) return kill(pid, 0) != 0 && errno == ESRCH;
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && time(nullptr) - info.st_mtime > kOldS;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  AB_CHECK(path_.find('\0') == std::string::npos, InvalidArgument, "the name of a file must not have a zero byte");
  const std::string folder = folder_of(path_);
  make_folders(folder);
  do {
    temp_path_ = temporary_name(folder);
    fd_ = open(temp_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) fail("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temp_path_.empty()) unlink(temp_path_.c_str());
  if (!old_path_.empty()) unlink(old_path_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(full ? ErrorKind::kResourceExhausted : ErrorKind::kUnavailable,
              fmt::format("cannot {} {}: {}", doing, path_, std::strerror(error)));
}

void AtomicFile::write_at_begin(std::string_view data) {
  if (lseek(fd_, 0, SEEK_SET) < 0) fail("write");
  write(data);
  if (lseek(fd_, 0, SEEK_END) < 0) fail("write");
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
  replaced_ = true;
}

void AtomicFile::keep_old() {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) {
    if (errno != ENOENT) fail("look at");
    return;
  }
  errno = EISDIR;
  if (S_ISDIR(info.st_mode)) fail("replace");
  do {
    old_path_ = temporary_name(folder_of(path_));
  } while (link(path_.c_str(), old_path_.c_str()) != 0 && errno == EEXIST);
  // A file system without links: then there is a moment without the file.
  if (lstat(old_path_.c_str(), &info) != 0 && rename(path_.c_str(), old_path_.c_str()) != 0) fail("replace");
}

void AtomicFile::restore() noexcept {
  if (!old_path_.empty()) {
    if (rename(old_path_.c_str(), path_.c_str()) != 0) old_path_.clear();  // the only copy stays, under that name
  } else if (replaced_) {
    unlink(path_.c_str());
  }
}

// Others may do the same at the same time.
void remove_stale(const std::string& folder) {
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (is_stale(it->path())) unlink(it->path().c_str());
  }
}

AtomicFile& FileSet::add(const std::string& path) {
  AB_CHECK(paths_.insert(path).second, InvalidArgument, "two parts of a save would be the file {}", path);
  if (!files_.empty()) files_.back().finish();
  AtomicFile& made = files_.emplace_back(path);
  const std::string folder = folder_of(path);
  if (folders_.insert(folder).second) remove_stale(folder);
  return made;
}

void FileSet::drop() {
  files_.clear();
  paths_.clear();
  folders_.clear();
}

void FileSet::commit() {
  const std::unique_ptr<FileSet, void (*)(FileSet*)> end(this, [](FileSet* set) { set->drop(); });
  if (files_.size() == 1) {
    files_.back().commit();
  } else {
    replace_all();
  }
  for (const auto& folder : folders_) sync_folder(folder);
}

void FileSet::replace_all() {
  try {
    if (!files_.empty()) files_.back().finish();
    for (auto& file : files_) file.keep_old();
    for (auto& file : files_) file.commit();
  } catch (...) {
    for (auto& file : files_) file.restore();
    throw;
  }
}

}  // namespace anabranch::io
