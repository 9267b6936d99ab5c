// A part of a growable table, with its own index, records and share of the byte limit. What happens to it depends on
// the keys that it is shown, in their order, and on nothing else. Not thread-safe: the table holds a lock for each
// shard.
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

// Memory for the records of all shards of a table: pieces of blocks that are large enough for huge pages.
class RecordMemory {
 public:
  float* take(size_t bytes);  // at most kBlockBytes, from any thread; lives as long as this object

 private:
  static constexpr size_t kBlockBytes = 4 << 20;
  std::mutex mutex_;  // once for thousands of rows
  std::vector<std::shared_ptr<void>> blocks_;
  size_t used_ = kBlockBytes;
};

class ShardCut;

class TableShard {
 public:
  // A row where it stands.
  struct Entry {
    int64_t key;
    uint32_t seen;
    const float* record;
  };

  // memory: null when records shall be allocated in the small, which a tight limit needs.
  TableShard(const TableOptions& options, int64_t budget_bytes, uint64_t number, RecordMemory* memory);
  ~TableShard();

  // Copies rows into out + place * width for `count` keys; keys without a row give zeros.
  void pull(const KeyAt* keys, int64_t count, const Pull& how, float* out);
  // Updates the rows of keys; those without a row are passed over, or get one first. `groups`: room for as many as
  // there are keys; `next`: of the batch, written at the places of these keys. Then one update has passed (tick).
  void update(const KeyAt* keys, int64_t count, RecordUpdate how, RecordGroup* groups, int32_t* next);
  // fn(key, last seen, record) for the rows whose hash, without the bits that choose the shard, begins with the `bits`
  // lowest bits of `prefix`: they stand next to each other.
  template <class Fn> void each_row_of(uint64_t prefix, int bits, Fn&& fn) const {
    each_entry_of(prefix, bits, [&](int64_t key, uint32_t seen, uint32_t row) { fn(key, seen, record(row)); });
  }
  // The record of a key that is read from a file; made, whatever the limits say, but null when memory is at its limit.
  float* restore(int64_t key, uint32_t seen);
  void reserve(int64_t rows);
  TableStats stats() const;
  void each_piece(const std::function<void(const void*, int64_t)>& fn) const;

  // ---- as it is now, while it goes on (ShardCut)
  // Unavailable: one has begun, and has not ended.
  void begin_cut(int64_t rows_a_slice);  // by the mean
  // Appends the rows of the next slice, as they stand in a file; false when there is none. Unavailable: none has begun.
  bool cut_slice(std::vector<Entry>* scratch, std::string* rows);
  // Those that have changed before their turn, as they were.
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
  using Place = TableIndex::Place;
  static constexpr uint32_t kMark = uint32_t{1} << 31;  // times and ages are smaller

  static constexpr int kMostSliceBits = 36;

  template <class Fn> void each_entry_of(uint64_t prefix, int bits, Fn&& fn) const {
    const uint64_t low = bits ? prefix << (64 - bits) : 0, high = low | (bits ? ~uint64_t{0} >> bits : ~uint64_t{0});
    index_.each_between(low, high, fn);
  }
  // Before a row changes or goes, where there is a cut.
  void keep_for_cut(int64_t key, uint32_t seen, uint32_t row);
  float* record(uint32_t row) const {
    return chunks_[(row - 1) >> chunk_bits_] + static_cast<int64_t>((row - 1) & chunk_mask_) * stride_;
  }
  float* look_up(int64_t key, bool train);
  void make_rows(const KeyAt* keys, int64_t count);
  int64_t collect(const KeyAt* keys, int64_t count, RecordGroup* groups, int32_t* next);
  // One update has passed: rows that were not seen for too long go, a few at a time.
  void tick();
  float* add(int64_t key);
  bool admitted(int64_t key);
  bool make_room();
  float* insert(int64_t key, uint32_t seen, bool from_file = false);
  void begin_index(uint64_t buckets, uint64_t most);
  void grow_index(bool from_file);
  void reserve_free();
  uint32_t new_record();
  void erase(Place at);
  bool evict_one();
  void fill(int64_t key, float* record) const;
  uint64_t draw();
  uint32_t age_of(uint32_t seen) const { return (clock_ - seen) & ~kMark; }  // the clock begins again at kMark

  const TableOptions options_;
  const int64_t stride_;  // floats from a record to the next one
  int64_t max_rows_;

  TableIndex index_;
  uint64_t hand_ = 0;  // the bucket where tick() goes on

  int chunk_bits_ = 0;
  uint32_t chunk_mask_ = 0, used_records_ = 0;
  RecordMemory* memory_;
  std::vector<std::shared_ptr<void>> chunk_memory_;
  std::vector<float*> chunks_;
  std::vector<uint32_t> free_;

  std::vector<uint8_t> counters_;  // how often keys without a row were seen, at most
  std::unique_ptr<ShardCut> cut_;
  uint32_t clock_ = 1;
  uint64_t random_;
  TableStats stats_;
};

// Floats of one record with the gap behind it: whole cache lines where that wastes little.
int64_t record_stride(const TableOptions& options);

}  // namespace anabranch::sparse
