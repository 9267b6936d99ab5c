// A part of a growable table, with its own index, records and share of the byte limit. Its state depends only on the
// keys it is given and their order. Not thread-safe: the table holds a lock for each shard.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sparse/key_order.h"
#include "sparse/record_loops.h"
#include "sparse/table_index.h"
#include "sparse/table_options.h"

namespace anabranch::sparse {

// Memory for the records of all shards of a table: parts of blocks that are large enough for huge pages.
class RecordMemory {
 public:
  float* take(size_t bytes);  // at most kBlockBytes, from any thread; valid as long as this object

 private:
  static constexpr size_t kBlockBytes = 4 << 20;
  std::mutex mutex_;  // taken once for thousands of rows
  std::vector<std::shared_ptr<void>> blocks_;
  size_t used_ = kBlockBytes;
};

class ShardCut;

class TableShard {
 public:
  // A row in memory.
  struct Entry {
    int64_t key;
    uint32_t seen;
    const float* record;
  };

  // memory: null if records must be allocated individually, which a tight limit needs.
  TableShard(const TableOptions& options, int64_t budget_bytes, uint64_t number, RecordMemory* memory);
  ~TableShard();

  // Copies rows to out + place * width for `count` keys; zeros for keys without a row.
  void pull(const KeyAt* keys, int64_t count, const Pull& how, float* out);
  // Updates the rows of keys; keys without a row are skipped, or get one first. `groups` has room for one entry per
  // key; `next` has the size of the batch and is written at the positions of these keys. Then one update has passed
  // (tick).
  void update(const KeyAt* keys, int64_t count, RecordUpdate how, RecordGroup* groups, int32_t* next);
  // fn(key, last seen, record) for the rows whose hash, without the bits that choose the shard, starts with the `bits`
  // lowest bits of `prefix`: they are adjacent.
  template <class Fn> void each_row_of(uint64_t prefix, int bits, Fn&& fn) const {
    each_entry_of(prefix, bits, [&](int64_t key, uint32_t seen, uint32_t row) { fn(key, seen, record(row)); });
  }
  // The record of a key from a file; created regardless of the rules, but null if memory is at its limit.
  float* restore(int64_t key, uint32_t seen);
  void reserve(int64_t rows);
  TableStats stats() const;
  void each_chunk(const std::function<void(const void*, int64_t)>& fn) const;

  // ---- a consistent copy while it is in use (ShardCut)
  // Unavailable: a cut is in progress.
  void begin_cut(int64_t rows_a_slice);  // on average
  // Appends the rows of the next slice in the file's format; false when there is none. Unavailable: no cut is in
  // progress.
  bool cut_slice(std::vector<Entry>* scratch, std::string* rows);
  // Saved rows that changed before they were written.
  std::string take_kept();
  void end_cut();

  int64_t dropped() const { return stats_.evicted + stats_.refused; }
  uint32_t clock() const { return clock_; }
  void set_clock(uint32_t clock) { clock_ = clock; }
  // fn(key, last seen, record) for every row.
  template <class Fn> void each_row(Fn&& fn) const {
    index_.each([&](int64_t key, uint32_t seen, uint32_t row) { fn(key, seen, record(row)); });
  }

 private:
  using Position = TableIndex::Position;
  static constexpr uint32_t kMark = uint32_t{1} << 31;  // times and ages are smaller

  static constexpr int kMostSliceBits = 36;

  template <class Fn> void each_entry_of(uint64_t prefix, int bits, Fn&& fn) const {
    const uint64_t low = bits ? prefix << (64 - bits) : 0, high = low | (bits ? ~uint64_t{0} >> bits : ~uint64_t{0});
    index_.each_between(low, high, fn);
  }
  // Before a row changes or is removed during a cut.
  void keep_for_cut(int64_t key, uint32_t seen, uint32_t row);
  float* record(uint32_t row) const {
    return chunks_[(row - 1) >> chunk_bits_] + static_cast<int64_t>((row - 1) & chunk_mask_) * stride_;
  }
  float* look_up(int64_t key, bool train);
  void make_rows(const KeyAt* keys, int64_t count);
  int64_t collect(const KeyAt* keys, int64_t count, RecordGroup* groups, int32_t* next);
  // One update has passed: expired rows are removed, a few at a time.
  void tick();
  float* add(int64_t key);
  bool admitted(int64_t key);
  bool make_room();
  float* insert(int64_t key, uint32_t seen, bool from_file = false);
  void begin_index(uint64_t buckets, uint64_t most);
  void grow_index(bool from_file);
  void reserve_free();
  uint32_t new_record();
  void erase(Position at);
  bool evict_one();
  void fill(int64_t key, float* record) const;
  uint64_t draw();
  uint32_t age_of(uint32_t seen) const { return (clock_ - seen) & ~kMark; }  // the clock restarts at kMark

  const TableOptions options_;
  const int64_t stride_;  // floats from a record to the next one
  int64_t max_rows_;

  TableIndex index_;
  uint64_t hand_ = 0;  // the bucket where tick() continues

  int chunk_bits_ = 0;
  uint32_t chunk_mask_ = 0, used_records_ = 0;
  RecordMemory* memory_;
  std::vector<std::shared_ptr<void>> chunk_memory_;
  std::vector<float*> chunks_;
  std::vector<uint32_t> free_;

  std::vector<uint8_t> counters_;  // approximate counts of keys without a row
  std::unique_ptr<ShardCut> cut_;
  uint32_t clock_ = 1;
  uint64_t random_;
  TableStats stats_;
};

// Floats of one record with padding: whole cache lines if that wastes little.
int64_t record_stride(const TableOptions& options);

}  // namespace anabranch::sparse
