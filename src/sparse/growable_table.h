// An embedding table with arbitrary 64-bit keys whose rows are created when a key is first seen in training: the row
// from (seed, key), and the moments of the optimizer after it. Rules decide which keys get a row, which rows are
// evicted, and how much memory they may use. All functions are thread-safe; a row is read and written whole. The
// contents after a sequence of calls do not depend on the number of threads that worked on each of them, nor, if rows
// are created by updates, on lookups, on the number of servers (1, 2 or 4) or on a restart in between.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "core/value.h"
#include "sparse/record_loops.h"
#include "sparse/shard_cut.h"
#include "sparse/spin_lock.h"
#include "sparse/table_file.h"
#include "sparse/table_shard.h"

namespace anabranch::io {
class AtomicFile;
class FileSet;
class MappedFile;
}  // namespace anabranch::io

namespace anabranch::sparse {

class LinkReader;
class TableChain;

class GrowableTable {
 public:
  static constexpr int64_t kShards = KeyOrder::kShards;

  // InvalidArgument if the options contradict each other.
  GrowableTable(std::string name, const TableOptions& options);
  ~GrowableTable();
  GrowableTable(const GrowableTable&) = delete;

  // The table that a variable holds; null if it holds something else.
  static std::shared_ptr<GrowableTable> of(const Value& value);
  static void put(Value* value, std::shared_ptr<GrowableTable> table);

  const std::string& name() const { return name_; }
  const TableOptions& options() const { return options_; }

  // Copies the rows of n keys into out; for keys without a row zeros, or in training, if updates create rows, their
  // initial rows. `scratch` belongs to the caller and is kept
  // between calls to reuse its memory.
  void pull(const int64_t* keys, int64_t n, const Pull& how, float* out, KeyOrder* scratch, Parallel* parallel);
  // Updates the rows of n keys, which may repeat, with the rule, rate, betas and epsilon of `how` from n gradients.
  // Keys without a row are skipped, or get one first. Rows are removed by age and score. Unsupported: the table was
  // loaded without all of its rules.
  struct Scratch {
    KeyOrder order;
    std::vector<RecordGroup> groups;
    std::vector<int32_t> next;
  };
  void update(const int64_t* keys, int64_t n, const float* grads, const RecordUpdate& how, Scratch* scratch,
              Parallel* parallel);

  TableStats stats();
  // fn(address, bytes) for every block of memory.
  void each_chunk(const std::function<void(const void*, int64_t)>& fn);
  // All keys, ascending.
  std::vector<int64_t> keys();
  // Appends the file of a table: its options and its rows, with or without their moments.
  void save(const std::string& path, bool with_moments, io::FileSet* files);
  // Replaces its rows by those of a file and keeps its own rules. Moments that the file lacks start again; a table
  // without moments ignores them. Nothing changes unless the whole file can be read and fits.
  // `mine`: selects keys; null: all.
  void load(const std::string& path, const std::function<bool(int64_t key)>& mine = {});

  // ---- in parts: rows with their moments, in the file's format
  static constexpr int kMostBits = 40;
  TableHeader header();  // without the number of rows
  // The number of bits that cuts `bytes` of rows into parts of about `part_bytes`.
  static int bits_for(int64_t bytes, int64_t part_bytes);
  // Rows whose hash starts with the `bits` bits of `part`, by ascending key. All parts together are the table.
  void append_rows(uint64_t part, int bits, std::string* to);
  // The number of updates, from which the ages of rows are counted. InvalidArgument unless it is from 1 to INT32_MAX.
  void set_clock(int64_t clock);
  // State of the rules beyond the rows and the clock: the approximate counts of keys that wait for admission, and the
  // number of updates of a timed table; empty without such rules. ShapeMismatch: the counts belong to another rule.
  std::vector<int64_t> key_counts();
  void set_key_counts(std::span<const int64_t> counts);
  // Reserves room in the index before many rows are added.
  void reserve(int64_t rows);
  // ShapeMismatch unless they are whole rows. An existing key takes the new row.
  void add_rows(const char* rows, size_t bytes);
  // Removes the rows of keys; others are skipped.
  void remove(const int64_t* keys, int64_t n);
  // Gives n keys these rows, without moments: a key without a row gets one with the initial moments. ResourceExhausted:
  // they do not fit.
  void set_rows(const int64_t* keys, int64_t n, const float* rows);
  // The keys that have a row, in their order.
  std::vector<int64_t> with_rows(std::span<const int64_t> keys);
  // The keys of rows that have changed since the last call and are still there, some of them twice; only if changes are
  // recorded (record_since).
  std::vector<int64_t> take_changed();
  // The keys whose rows the rules have removed or shrunk since the last call (TableOptions::tells).
  std::vector<int64_t> take_told();

  // ---- rows of one moment, while the table is in use
  // The moment is the construction: the caller blocks updates until then. Rows created meanwhile by lookups in training
  // may be missing or present, in their initial state.
  class Cut {
   public:
    // `slice_bytes`: rows per call of next(), about. Unavailable: a cut is in progress. NotFound: `kind` takes changes,
    // and they were not recorded.
    Cut(std::shared_ptr<GrowableTable> table, int64_t slice_bytes, CutKind kind = CutKind::kRows);
    ~Cut() { abandon(); }
    Cut(const Cut&) = delete;

    const TableHeader& header() const { return header_; }  // of the moment
    const std::string& name() const { return table_->name(); }
    bool has_changes() const { return has_changes_; }
    const std::vector<int64_t>& gone() const { return gone_; }  // keys that the changes have lost, ascending
    // Appends some rows, in no particular order; false when there are no more. Each row of the moment appears once.
    // Unavailable: the table was loaded meanwhile.
    bool next(CutRows* rows);
    bool next(std::string* rows);  // all of them
    // The rows that next() gave are a link of a chain, and changes are recorded from there on.
    void end(uint64_t link);
    // Without end(): the changes belong to the next cut. Nothing is left to give.
    void abandon();

   private:
    void cut_some(CutRows* rows);  // of the current shard

    const std::shared_ptr<GrowableTable> table_;
    const int64_t slice_bytes_;
    const TableHeader header_;
    uint64_t since_;
    bool has_changes_ = true;
    std::vector<int64_t> gone_;
    size_t shard_ = 0;                                        // the shard being written
    std::array<uint64_t, size_t{KeyOrder::kShards}> cuts_{};  // their numbers
    std::vector<TableShard::Owed> scratch_;
    std::array<std::unique_ptr<ShardChanges>, size_t{KeyOrder::kShards}> written_;
  };
  // The link since which changes are recorded (its checksum); 0: there is none.
  uint64_t recorded_since() const { return since_.load(); }
  // Starts to record changes, for the link after the one with this checksum.
  void record_since(uint64_t link);
  int64_t changed_bytes();  // of the rows and keys of the next link; all rows if changes are not recorded

  // ---- chains of links (table_chain.h)
  // Replaces its rows with the rows at the end of a chain, as load() does with those of a file.
  void load(const TableChain& chain, const std::function<bool(int64_t key)>& mine = {});
  // Applies the changes of a link. The caller has checked the position of the link in its chain.
  void apply(const LinkReader& link, const std::function<bool(int64_t key)>& mine = {});
  static std::shared_ptr<GrowableTable> open(const std::string& name, const TableChain& chain,
                                             const std::function<bool(int64_t key)>& mine = {});

  // ---- a table that is read while it follows a chain
  // A table without rules and moments for lookups only.
  static TableOptions for_lookups(const TableHeader& header);
  static std::shared_ptr<GrowableTable> for_lookups(const std::string& name, const TableChain& chain);
  // The changes of `chain` as a layer over this table, which is not changed.
  std::shared_ptr<GrowableTable> layer_of(const TableChain& chain) const;
  // Lookups read the rows of `layer` first; null: there is none. No lookup runs meanwhile.
  void set_layer(std::shared_ptr<GrowableTable> layer) { layer_ = std::move(layer); }
  // A table that reads as `table` will when `changes` is its layer. It takes no updates.
  static std::shared_ptr<GrowableTable> preview(std::shared_ptr<GrowableTable> table,
                                                std::shared_ptr<GrowableTable> changes);
  // Copies the rows of its layer to this table, which changes no lookup. Lookups go on.
  void fold_layer();

  // ---- a table whose rows other processes have, too: images of its shards in files, and own rows that hide some
  // Writes the rows of a shard at the link with this checksum. Nothing changes them meanwhile; lookups go on.
  void write_image(size_t shard, uint64_t link, io::AtomicFile* file) const;
  // A table for lookups only, whose shards are empty.
  static std::shared_ptr<GrowableTable> for_images(const std::string& name, int64_t width);
  // No lookup runs meanwhile. InvalidArgument: the file is not a whole image of this shard and link.
  void map_image(size_t shard, uint64_t link, const std::string& path);
  bool is_image() const { return own_ != nullptr; }
  int64_t own_rows(size_t shard) const;   // changes since its image
  int64_t held_rows(size_t shard) const;  // of the image, or of a table without one
  // Takes the images of a table, which read as the rows of this one, and gives it the old ones. No lookup runs
  // meanwhile.
  void exchange_images(GrowableTable* other);

  // A table with the options and the rows of a file.
  static std::shared_ptr<GrowableTable> open(const std::string& name, const std::string& path,
                                             const std::function<bool(int64_t key)>& mine = {});

 private:
  struct Part {
    SpinLock lock;
    std::unique_ptr<TableShard> shard;
  };
  class HoldAll;

  static constexpr uint32_t kGone = 0, kThere = 1;  // ages of rows in a layer: those of tables that are only read
                                                    // do not matter
  void tell_what_was_dropped();
  void check_not_image() const;
  // Of a layer.
  void put_changes(const LinkReader& link, const std::function<bool(int64_t key)>& mine = {});
  void put_change(int64_t key, uint32_t seen, const float* numbers);
  // fn(key, record) for the rows of a shard that lookups find, without those of the layer.
  void each_current(size_t shard, const std::function<void(int64_t key, const float* record)>& fn) const;
  void begin_own(int64_t more);
  void add_own(TableStats* sum);
  void check_fits(const TableHeader& h, const std::string& path) const;
  void put_row(const char* row, const TableHeader& of, const std::function<bool(int64_t key)>& mine,
               const std::string& where);
  void take(GrowableTable* fresh, int64_t clock);
  void write(bool with_moments, io::AtomicFile* file);

  const std::string name_;
  const TableOptions options_;
  std::shared_ptr<RecordMemory> memory_;
  std::array<Part, size_t{kShards}> parts_;
  std::atomic<int64_t> tell_at_{1};  // keys dropped
  std::atomic<uint64_t> since_{0};
  std::shared_ptr<GrowableTable> layer_;  // rows that hide those of this table
  std::shared_ptr<GrowableTable> under_;  // of a preview: the table that the layer hides
  // Memory of rows; null: the shard has its own.
  std::array<std::shared_ptr<io::MappedFile>, size_t{kShards}> images_;
  std::shared_ptr<GrowableTable> own_;  // rows that hide those of the images; null: a table without images
  std::atomic<bool> has_own_{false};
};

// Excludes all other threads from a table.
class GrowableTable::HoldAll {
 public:
  explicit HoldAll(GrowableTable& table) : table_(table) {
    for (Part& p : table_.parts_) p.lock.lock();
  }
  ~HoldAll() {
    for (Part& p : table_.parts_) p.lock.unlock();
  }
  HoldAll(const HoldAll&) = delete;

 private:
  GrowableTable& table_;
};

}  // namespace anabranch::sparse
