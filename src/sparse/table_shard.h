// A part of a growable table, with its own index, records and share of the byte limit. Its rows depend only on the keys
// it is given and their order: not on the layout of the index, which differs in a shard that was restored from disk.
// Not thread-safe: the table holds a lock for each shard.
//
// The rows of a shard belong to a few classes, by hash. A class has its own share of the limit and its own counts of
// keys without a row. Servers whose number divides the number of classes hold whole classes, so that the rules decide
// for each key as in one process.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sparse/key_counts.h"
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

class ShardChanges;
class ShardCut;
struct CutRows;

// Contents of a cut. kChanges and kBoth end the recorded changes, and start to record those after the moment.
enum class CutKind {
  kRows,     // all rows
  kChanges,  // the rows that have changed and the keys that are gone since the last cut of changes
  kBoth,     // all rows; and the changes, if they were recorded
};

class TableShard {
 public:
  // A row in memory.
  struct Entry {
    int64_t key;
    uint32_t seen;
    const float* record;
  };

  static constexpr int kClasses = 4;  // of a table on one server

  // Rows in memory of another object, whose numbers are from 1 to `rows`.
  struct Image {
    const TableIndex::Bucket* index;
    uint64_t buckets;
    const float* records;
    uint32_t rows;
  };

  // memory: null if records must be allocated individually, which a tight limit needs.
  TableShard(const TableOptions& options, RecordMemory* memory);
  // Rows that are only read, and not by lookups in training.
  TableShard(const TableOptions& options, const Image& image);
  ~TableShard();

  // Copies rows to out + place * width for `count` keys; zeros for keys without a row.
  void pull(const KeyAt* keys, int64_t count, const Pull& how, float* out);
  // Updates the rows of keys; keys without a row are skipped, or get one first if the rules say so. `groups` has room
  // for one entry per key; `next` has the size of the batch and is written at the positions of these keys. Then one
  // update has passed (tick).
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
  // The counts of keys without a row.
  std::vector<KeyCounts>& key_counts() { return key_counts_; }
  void each_chunk(const std::function<void(const void*, int64_t)>& fn) const;

  // ---- a consistent copy while it is in use (ShardCut)
  // A row of a slice.
  struct Owed {
    int64_t key;
    uint32_t seen, row;
  };
  // The number of the cut; a cut that is over does not touch a later one. Unavailable: a cut is in progress. NotFound:
  // changes were not recorded.
  uint64_t begin_cut(CutKind kind, int64_t rows_a_slice);  // on average
  // Appends the keys that the changes of the cut have lost; false if it has no changes.
  bool append_gone(std::vector<int64_t>* keys) const;
  // Appends the rows of the next slice; false when there is none. Unavailable: no cut is in progress.
  bool cut_slice(uint64_t cut, std::vector<Owed>* scratch, CutRows* rows);
  // Saved rows that changed before they were written.
  CutRows take_kept(uint64_t cut);
  // The changes that it has written, if any.
  std::unique_ptr<ShardChanges> end_cut(uint64_t cut);

  // ---- changes between two links of a chain
  void record_changes();
  // Adds those of the next link to them: all rows if changes are not recorded.
  void count_changes(uint64_t* rows, uint64_t* gone) const;
  // They were not written.
  void take_back(const ShardChanges& changes);
  // Appends the keys of rows that have changed and still exist, some of them twice, and starts to record again.
  void take_changed(std::vector<int64_t>* keys);
  // False if there is no such row.
  bool remove(int64_t key);
  bool has(int64_t key) const { return row_of(key) != 0; }
  int64_t rows() const { return stats_.rows; }

  int64_t dropped() const { return stats_.evicted + stats_.refused; }
  // The record of a key, which starts with its initial row if there was none; regardless of the rules, but null if
  // memory is at its limit.
  float* put(int64_t key);
  // Appends the keys whose rows the rules have removed or shrunk since the last call (TableOptions::tells).
  void take_told(std::vector<int64_t>* keys);
  // The initial row of a key.
  void start(int64_t key, float* row) const;
  uint32_t clock() const { return clock_; }
  void set_clock(uint32_t clock) { clock_ = clock; }
  uint32_t* updates_of_timed() { return options_.timed ? &updates_ : nullptr; }
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
  uint32_t row_of(int64_t key) const;  // 0 if it has none
  // Before a row or its age changes.
  void before_change(int64_t key, uint32_t seen, uint32_t row);
  // A row that may leave at the limit.
  struct Candidate {
    uint64_t distance;  // of its hash from the random one at which the search started
    Position at;
  };

  float* look_up(int64_t key, bool train);
  int64_t collect(const KeyAt* keys, int64_t count, RecordGroup* groups, int32_t* next);
  bool make_rows(const RecordGroup* groups, int64_t found);
  void count_seen(const RecordUpdate& how) const;
  // One update has passed: old rows and those of a low score are removed, a few at a time.
  void tick(uint32_t before);
  template <class Fn> void each_due(int64_t every, uint32_t after, uint32_t upto, Fn&& fn);
  void expire(uint32_t before);
  void shrink();
  void remove_due(int64_t* removed);
  float* add(int64_t key);
  bool admitted(int64_t key, int which);
  bool make_room(int64_t key, int which);
  bool evict_one(uint64_t from, int which);
  void find_candidates(uint64_t from, int which);
  float worth(const float* record) const;
  int class_of(int64_t key) const {
    return static_cast<int>(in_range(spread(hash_id(key)) * static_cast<uint64_t>(options_.servers), rows_of_.size()));
  }
  // The number of updates, by which they differ.
  uint32_t updates() const { return options_.timed ? updates_ : clock_; }
  // A random number for a decision about a key in this update.
  uint64_t draw(int64_t key) const;
  float* insert(int64_t key, uint32_t seen, bool from_file = false);
  void begin_index(uint64_t buckets, uint64_t most);
  void grow_index(bool from_file);
  void reserve_free();
  uint32_t new_record();
  int64_t record_bytes() const;
  void erase(Position at);
  void fill(int64_t key, float* record) const;
  uint32_t age_of(uint32_t seen) const { return (clock_ - seen) & ~kMark; }  // the clock restarts at kMark

  const TableOptions options_;
  const int64_t stride_;          // floats from a record to the next one
  int64_t max_rows_;              // in memory
  int64_t max_of_class_;          // rows
  std::vector<int64_t> rows_of_;  // of each class

  TableIndex index_;

  int chunk_bits_ = 0;
  uint32_t chunk_mask_ = 0, used_records_ = 0;
  RecordMemory* memory_;
  std::vector<std::shared_ptr<void>> chunk_memory_;
  std::vector<float*> chunks_;
  bool is_image_ = false;
  std::vector<uint32_t> free_;

  std::vector<KeyCounts> key_counts_;  // of each class
  bool is_cut(uint64_t number) const { return cut_ && number == cuts_; }
  std::unique_ptr<ShardCut> cut_;
  uint64_t cuts_ = 0;                      // that have begun: the number of the last one
  std::unique_ptr<ShardChanges> changes_;  // null: they are not recorded
  uint32_t clock_ = 1;                     // of ages: the number of updates, or the time of the last event
  uint32_t updates_ = 1;                   // if the clock is a time
  TableStats stats_;
  std::vector<Candidate> candidates_, passed_;
  std::vector<int64_t> absent_, due_, told_;  // keys: of an update without a row; to be removed; for take_told()
};

// Floats of one record with padding: whole cache lines if that wastes little.
int64_t record_stride(const TableOptions& options);

}  // namespace anabranch::sparse
