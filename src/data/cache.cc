// An entry: the magic word, the blocks, an index of them, the key, and a tail with the offset of the index.
#include "data/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "data/row_format.h"
#include "io/atomic_file.h"

namespace anabranch::data {
namespace {

constexpr uint64_t kMagic = 0x31304548434142ad;  // its last digits are the version of the format and of the parsers
constexpr uint64_t kSeed = 20201;

struct Entry {
  uint64_t at = 0, bytes = 0, checksum = 0;  // bytes 0: missing
};

struct Tail {
  uint64_t index_at, entries, key_bytes, checksum, magic;  // of index and key
};

template <class T> std::string_view bytes_of(const T* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

class Writer {
 public:
  explicit Writer(const CachePlace& place) : file_(place.path), key_(place.key) { write(bytes_of(&kMagic, 1)); }

  // Any order, any thread.
  void add(const Block& block) {
    const std::string bytes = block_bytes(block);
    const uint64_t checksum = hash_bytes(bytes, kSeed);
    const std::lock_guard lock(mutex_);
    const auto chunk = static_cast<size_t>(block.chunk);
    if (entries_.size() <= chunk) entries_.resize(chunk + 1);
    entries_[chunk] = {written_, bytes.size(), checksum};
    write(bytes);
    ++added_;
    commit_if_complete();
  }

  void end(int64_t chunks) {
    const std::lock_guard lock(mutex_);
    chunks_ = chunks;
    commit_if_complete();
  }

 private:
  void write(std::string_view bytes) {
    file_.write(bytes);
    written_ += bytes.size();
  }

  void commit_if_complete() {
    if (added_ != chunks_) return;
    const std::string end = std::string(bytes_of(entries_.data(), entries_.size())) + key_;
    const Tail tail{written_, entries_.size(), key_.size(), hash_bytes(end, kSeed), kMagic};
    write(end);
    write(bytes_of(&tail, 1));
    file_.commit();
  }

  std::mutex mutex_;
  io::AtomicFile file_;
  std::string key_;
  std::vector<Entry> entries_;  // by chunk
  uint64_t written_ = 0;
  int64_t added_ = 0, chunks_ = -1;
};

class CachingInput final : public Input {
 public:
  CachingInput(std::unique_ptr<Input> text, const CachePlace& place, const std::atomic<bool>* stop)
      : text_(std::move(text)), stop_(stop), writer_(std::make_unique<Writer>(place)) {}

  bool claim(Chunk* chunk) override {
    if (text_->claim(chunk)) {
      ++chunks_;
      return true;
    }
    if (!*stop_) writer_->end(chunks_);  // an aborted pass has not seen the end of the text
    return false;
  }
  void finish(Chunk* chunk, Block* out) const override {
    text_->finish(chunk, out);
    writer_->add(*out);
  }
  int64_t consumed() const override { return text_->consumed(); }

 private:
  std::unique_ptr<Input> text_;
  const std::atomic<bool>* stop_;
  std::unique_ptr<Writer> writer_;
  int64_t chunks_ = 0;
};

class CacheInput final : public Input {
 public:
  CacheInput(int fd, std::vector<Entry> entries, const CachePlace& place, const Schema& schema)
      : fd_(fd), entries_(std::move(entries)), schema_(schema), path_(place.path), text_bytes_(place.text_bytes) {}
  ~CacheInput() override { close(fd_); }
  CacheInput(const CacheInput&) = delete;

  bool claim(Chunk* chunk) override {
    if (next_ == entries_.size()) return false;
    chunk->index = static_cast<int64_t>(next_++);
    chunk->too_long = false;
    return true;
  }

  void finish(Chunk* chunk, Block* out) const override {
    const Entry& entry = entries_[static_cast<size_t>(chunk->index)];
    chunk->raw.size = 0;
    chunk->raw.reserve(entry.bytes);
    while (chunk->raw.size < entry.bytes) {
      const size_t have = chunk->raw.size;
      const ssize_t n = pread(fd_, chunk->raw.data() + have, entry.bytes - have, static_cast<off_t>(entry.at + have));
      if (n < 0 && errno == EINTR) continue;
      AB_CHECK(n > 0, Unavailable, "cannot read {}: {}", path_,
               n ? std::strerror(errno) : "the file has become shorter");
      chunk->raw.size += static_cast<size_t>(n);
    }
    const std::string_view bytes(chunk->raw.data(), chunk->raw.size);
    AB_CHECK(hash_bytes(bytes, kSeed) == entry.checksum, InvalidArgument,
             "{}: the cache is damaged at byte {}: remove it to read the text again", path_, entry.at);
    block_from_bytes(bytes, path_, schema_, out);
  }

  int64_t consumed() const override {
    return entries_.empty() ? text_bytes_
                            : static_cast<int64_t>(static_cast<double>(text_bytes_) * static_cast<double>(next_) /
                                                   static_cast<double>(entries_.size()));
  }

 private:
  int fd_;
  std::vector<Entry> entries_;
  const Schema schema_;
  std::string path_;
  int64_t text_bytes_;
  size_t next_ = 0;
};

bool read_at(int fd, uint64_t at, void* to, size_t count) {
  return pread(fd, to, count, static_cast<off_t>(at)) == static_cast<ssize_t>(count);
}

// False: not an entry of this format for this key.
bool read_index(int fd, const std::string& key, std::vector<Entry>* entries) {
  struct stat info {};
  Tail tail{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < sizeof tail || !read_at(fd, size - sizeof tail, &tail, sizeof tail)) return false;
  if (tail.magic != kMagic || tail.key_bytes != key.size() || tail.entries > size / sizeof(Entry)) return false;
  const uint64_t index_bytes = tail.entries * sizeof(Entry);
  if (tail.index_at + index_bytes + tail.key_bytes + sizeof tail != size) return false;
  std::string end(index_bytes + tail.key_bytes, '\0');
  if (!read_at(fd, tail.index_at, end.data(), end.size()) || hash_bytes(end, kSeed) != tail.checksum) return false;
  if (end.compare(index_bytes, std::string::npos, key) != 0) return false;
  entries->resize(tail.entries);
  if (index_bytes) std::memcpy(entries->data(), end.data(), index_bytes);
  for (const Entry& entry : *entries) {
    if (entry.at > tail.index_at || entry.bytes > tail.index_at - entry.at) return false;
  }
  return true;
}

}  // namespace

CachePlace cache_place(const Settings& settings, const std::string& text_path) {
  struct stat info {};
  AB_CHECK(stat(text_path.c_str(), &info) == 0, NotFound, "file {} does not exist", text_path);
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(text_path, failed);
  const Schema& schema = settings.schema;
  std::string made =
      fmt::format("{}\n{}\n{}\n{} {} {} {}{}\n", whole.string(), settings.pipe_command, settings.format, schema.ins_id,
                  schema.content, schema.drop_zeros, settings.max_line_bytes, schema.joins ? " joins" : "");
  if (!settings.share.is_whole()) {
    const Settings::Share& share = settings.share;
    made += fmt::format("share {} {} {} {}\n", share.begin, share.end, share.seed, share.column);
  }
  for (const Slot& slot : schema.slots) {
    made += fmt::format("{} {} {} {} {}\n", slot.name, dtype_name(slot.dtype), slot.dense, slot.shape.str(), slot.used);
  }
  CachePlace place;
  place.path =
      fmt::format("{}/{}-{:016x}.rows", settings.cache_folder, whole.filename().string(), hash_bytes(made, kSeed));
  place.key = fmt::format("{}{} {}.{:09}", made, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  place.text_bytes = info.st_size;
  return place;
}

std::unique_ptr<Input> open_cache(const CachePlace& place, const Schema& schema) {
  const int fd = open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  std::vector<Entry> entries;
  if (read_index(fd, place.key, &entries)) return std::make_unique<CacheInput>(fd, std::move(entries), place, schema);
  close(fd);
  return nullptr;
}

std::unique_ptr<Input> caching_input(std::unique_ptr<Input> text, const CachePlace& place,
                                     const std::atomic<bool>* stop) {
  return std::make_unique<CachingInput>(std::move(text), place, stop);
}

}  // namespace anabranch::data
