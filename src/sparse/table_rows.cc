// Rows that come to a table from files and servers.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "sparse/growable_table.h"

namespace anabranch::sparse {

// Shards have about equally many rows.
void GrowableTable::reserve(int64_t rows) {
  const int64_t each = rows / kShards, more = each / 64 + 64;
  for (Part& p : parts_) {
    const std::lock_guard held(p.lock);
    p.shard->reserve(each + more);
  }
}

void GrowableTable::set_clock(int64_t clock) {
  AB_CHECK(clock > 0 && clock <= INT32_MAX, InvalidArgument, "the clock of table {} must be from 1 to {}, got {}",
           name_, INT32_MAX, clock);
  for (Part& p : parts_) {
    const std::lock_guard held(p.lock);
    p.shard->set_clock(static_cast<uint32_t>(clock));
  }
}

void GrowableTable::add_rows(const char* rows, size_t bytes) {
  const TableHeader mine = header_of(options_, true, 0, 1);
  const size_t row_bytes = mine.row_bytes();
  AB_CHECK(bytes % row_bytes == 0, ShapeMismatch, "{} bytes are not whole rows of table {}, which have {} bytes each",
           bytes, name_, row_bytes);
  check_not_image();
  for (const char* row = rows; row < rows + bytes; row += row_bytes) put_row(row, mine, {}, "the state");
}

// A row of a file with this header: the table takes the numbers that it has, too.
void GrowableTable::put_row(const char* row, const TableHeader& of, const std::function<bool(int64_t key)>& mine,
                            const std::string& where) {
  int64_t key = 0;
  uint32_t seen = 0;
  std::memcpy(&key, row, sizeof(key));
  std::memcpy(&seen, row + sizeof(key), sizeof(seen));
  if (mine && !mine(key)) return;
  const int64_t own = options_.floats() - options_.counts();
  const int64_t taken = options_.width + std::min(of.state(), options_.state());
  Part& part = parts_[KeyOrder::shard_of(key)];
  const std::lock_guard held(part.lock);
  float* record = part.shard->restore(key, seen);
  AB_CHECK(record != nullptr, ResourceExhausted, "{} holds more rows than fit into the {} bytes of table {}", where,
           options_.max_bytes, name_);
  const char* numbers = row + sizeof(key) + sizeof(seen);
  std::memcpy(record, numbers, static_cast<size_t>(taken) * sizeof(float));
  std::fill(record + taken, record + own, options_.moment_start);
  if (options_.counts() == 0) return;
  record[own] = 0;
  if (of.policy() != Policy::kRarest) return;
  std::memcpy(record + own, numbers + static_cast<size_t>(of.floats() - 1) * sizeof(float), sizeof(float));
}

void GrowableTable::remove(const int64_t* keys, int64_t n) {
  check_not_image();
  for (int64_t i = 0; i < n; ++i) {
    Part& part = parts_[KeyOrder::shard_of(keys[i])];
    const std::lock_guard held(part.lock);
    part.shard->remove(keys[i]);
  }
}

void GrowableTable::set_rows(const int64_t* keys, int64_t n, const float* rows) {
  check_not_image();
  const auto width = static_cast<size_t>(options_.width);
  for (int64_t i = 0; i < n; ++i, rows += width) {
    Part& part = parts_[KeyOrder::shard_of(keys[i])];
    const std::lock_guard held(part.lock);
    float* const record = part.shard->put(keys[i]);
    AB_CHECK(record != nullptr, ResourceExhausted, "more rows than fit into the {} bytes of table {}",
             options_.max_bytes, name_);
    std::memcpy(record, rows, width * sizeof(float));
  }
}

std::vector<int64_t> GrowableTable::with_rows(std::span<const int64_t> keys) {
  std::vector<int64_t> out;
  for (const int64_t key : keys) {
    Part& part = parts_[KeyOrder::shard_of(key)];
    const std::lock_guard held(part.lock);
    if (part.shard->has(key)) out.push_back(key);
  }
  return out;
}

std::vector<int64_t> GrowableTable::take_changed() {
  std::vector<int64_t> out;
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    part.shard->take_changed(&out);
  }
  return out;
}

std::vector<int64_t> GrowableTable::take_told() {
  std::vector<int64_t> out;
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    part.shard->take_told(&out);
  }
  return out;
}

}  // namespace anabranch::sparse
