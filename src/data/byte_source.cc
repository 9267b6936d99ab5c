#include "data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "data/child.h"

namespace anabranch::data {
namespace {

class PlainFile final : public ByteSource {
 public:
  explicit PlainFile(std::string path) : path_(std::move(path)) {
    // Without O_NONBLOCK opening a named pipe would wait for a writer that may never come.
    fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int error = errno;
    AB_CHECK(fd_ >= 0 || (error != ENOENT && error != ENOTDIR), NotFound, "file {} does not exist{}", path_,
             path_.find_first_of("*?[") == std::string::npos
                 ? ""
                 : ": set_filelist takes paths, not a pattern; glob.glob returns those that match");
    AB_CHECK(fd_ >= 0, Unavailable, "cannot open {}: {}", path_, std::strerror(error));
    struct stat info {};
    const bool regular = fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
    if (!regular) close(fd_);
    AB_CHECK(regular, InvalidArgument, "{} is not a regular file", path_);
    posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~PlainFile() override { close(fd_); }
  PlainFile(const PlainFile&) = delete;

  size_t read(char* to, size_t capacity) override {
    for (;;) {
      const ssize_t n = ::read(fd_, to, capacity);
      if (n < 0 && errno == EINTR) continue;
      AB_CHECK(n >= 0, Unavailable, "cannot read {} after byte {}: {}", path_, consumed_, std::strerror(errno));
      consumed_ += n;
      return static_cast<size_t>(n);
    }
  }
  int64_t consumed() const override { return consumed_; }

  size_t first_bytes(unsigned char* to, size_t count) const {
    const ssize_t n = pread(fd_, to, count, 0);
    return n < 0 ? 0 : static_cast<size_t>(n);
  }

 private:
  std::string path_;
  int fd_;
  int64_t consumed_ = 0;
};

class CommandSource final : public ByteSource {
 public:
  CommandSource(const Settings& settings, const std::string& path, const std::atomic<bool>* stop)
      : child_(settings.pipe_command, path, {settings.silence_s, settings.command_limit_s}, stop) {}

  size_t read(char* to, size_t capacity) override { return child_.read(to, capacity); }
  bool waits() override { return child_.waits(); }
  int64_t consumed() const override { return child_.consumed(); }

 private:
  Child child_;
};

// Files that a reader of text cannot read, by their first bytes.
void check_text(std::string_view start, const std::string& path) {
  struct Kind {
    std::string_view start;
    const char* what;
    const char* command;
  };
  static constexpr Kind kKinds[] = {{"BZh", "a bzip2 file", "bzip2 -dc"},
                                    {"\xfd\x37zXZ", "an xz file", "xz -dc"},
                                    {"\x04\x22\x4d\x18", "an lz4 file", "lz4 -dc"},
                                    {"PK\x03\x04", "a zip file (or a spreadsheet)", "zcat"},
                                    {"\xff\xfe", "text in UTF-16", "iconv -f UTF-16 -t UTF-8"},
                                    {"\xfe\xff", "text in UTF-16", "iconv -f UTF-16 -t UTF-8"}};
  for (const Kind& kind : kKinds) {
    AB_CHECK(!start.starts_with(kind.start), Unsupported,
             "{} is {}, but the reader takes text in UTF-8, and gzip and zstd files: convert it, or call "
             "set_pipe_command(\"{}\")",
             path, kind.what, kind.command);
  }
}

bool is_cat(const std::string& command) {
  const size_t begin = command.find_first_not_of(" \t");
  const size_t end = command.find_last_not_of(" \t");
  return begin == std::string::npos || command.substr(begin, end - begin + 1) == "cat";
}

}  // namespace

std::unique_ptr<ByteSource> open_source(const Settings& settings, const std::string& path,
                                        const std::atomic<bool>* stop) {
  if (!is_cat(settings.pipe_command)) return std::make_unique<CommandSource>(settings, path, stop);
  auto file = std::make_unique<PlainFile>(path);
  unsigned char magic[8] = {};
  const size_t n = file->first_bytes(magic, sizeof magic);
  check_text({reinterpret_cast<const char*>(magic), n}, path);
  if (n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b) return gzip_source(std::move(file), path);
  const bool zstd = n >= 4 && magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd;
  const bool skippable =
      n >= 4 && (magic[0] & 0xf0) == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18;
  if (zstd || skippable) return zstd_source(std::move(file), path);
  return file;
}

}  // namespace anabranch::data
