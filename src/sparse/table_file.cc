// The file of a growable table, little endian: "ABTABLE1", width, moments, count of rows, clock (int64 each), then for
// each row, by ascending key: key (int64), when it was last seen (uint32), its numbers (float32), row and moments.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "sparse/growable_table.h"
#include "sparse/hash.h"

namespace anabranch::sparse {
namespace {

constexpr char kMagic[8] = {'A', 'B', 'T', 'A', 'B', 'L', 'E', '1'};

struct Header {
  char magic[8];
  int64_t width, moments, rows, clock;
};

struct Entry {
  int64_t key;
  uint32_t seen;
  const float* record;
};

std::string reason() { return std::strerror(errno); }

void write_rows(std::FILE* file, const Header& header, const std::vector<Entry>& entries, const std::string& path) {
  const auto put = [&](const void* data, size_t bytes) {
    AB_CHECK(std::fwrite(data, 1, bytes, file) == bytes, Unavailable, "cannot write {}: {}", path, reason());
  };
  put(&header, sizeof(header));
  const size_t bytes = static_cast<size_t>(header.width * (1 + header.moments)) * sizeof(float);
  for (const Entry& e : entries) {
    put(&e.key, sizeof(e.key));
    put(&e.seen, sizeof(e.seen));
    put(e.record, bytes);
  }
  AB_CHECK(std::fflush(file) == 0 && fsync(fileno(file)) == 0, Unavailable, "cannot write {}: {}", path, reason());
}

Header read_header(std::ifstream& file, const std::string& path, const TableOptions& options) {
  Header h{};
  file.seekg(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellg());
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&h), sizeof(h));
  AB_CHECK(file.good() && std::memcmp(h.magic, kMagic, sizeof(kMagic)) == 0, InvalidArgument, "{} holds no table",
           path);
  AB_CHECK(h.width == options.width && h.moments == options.moments, ShapeMismatch,
           "{} holds rows of {} numbers with {} moments, the table has {} and {}", path, h.width, h.moments,
           options.width, options.moments);
  const int64_t row_bytes = 12 + h.width * (1 + h.moments) * 4, left = size - static_cast<int64_t>(sizeof(h));
  AB_CHECK(h.rows >= 0 && left / row_bytes == h.rows && left % row_bytes == 0 && h.clock > 0 && h.clock <= UINT32_MAX,
           InvalidArgument, "{} is damaged: {} bytes for {} rows", path, left, h.rows);
  return h;
}

}  // namespace

void GrowableTable::save(const std::string& path) {
  const HoldAll held(*this);
  std::vector<Entry> entries;
  for (const Part& part : parts_) {
    part.shard->each_row([&](int64_t key, uint32_t seen, const float* record) {
      entries.push_back({key, seen, record});
    });
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  Header header{{}, options_.width, options_.moments, static_cast<int64_t>(entries.size()), parts_[0].shard->clock()};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  AB_CHECK(file != nullptr, Unavailable, "cannot write {}: {}", temporary, reason());
  try {
    write_rows(file, header, entries, temporary);
  } catch (...) {
    std::fclose(file);
    std::remove(temporary.c_str());
    throw;
  }
  std::fclose(file);
  AB_CHECK(std::rename(temporary.c_str(), path.c_str()) == 0, Unavailable, "cannot write {}: {}", path, reason());
}

void GrowableTable::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  AB_CHECK(file.good(), NotFound, "cannot read {}: {}", path, reason());
  const Header h = read_header(file, path, options_);
  GrowableTable fresh(name_, options_);
  const auto floats = static_cast<size_t>(h.width * (1 + h.moments));
  for (int64_t r = 0; r < h.rows; ++r) {
    int64_t key = 0;
    uint32_t seen = 0;
    std::vector<float> numbers(floats);
    file.read(reinterpret_cast<char*>(&key), sizeof(key));
    file.read(reinterpret_cast<char*>(&seen), sizeof(seen));
    file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(floats * sizeof(float)));
    AB_CHECK(file.good(), InvalidArgument, "{} is damaged at row {}", path, r);
    float* record = fresh.parts_[hash_id(key) >> (64 - TableShard::kBits)].shard->restore(key, seen);
    AB_CHECK(record != nullptr, ResourceExhausted, "{} holds {} rows, more than fit into the {} bytes of table {}",
             path, h.rows, options_.max_bytes, name_);
    std::copy(numbers.begin(), numbers.end(), record);
  }
  const HoldAll held(*this);
  for (size_t s = 0; s < kShards; ++s) {
    fresh.parts_[s].shard->set_clock(static_cast<uint32_t>(h.clock));
    std::swap(parts_[s].shard, fresh.parts_[s].shard);
  }
  std::swap(memory_, fresh.memory_);
}

}  // namespace anabranch::sparse
