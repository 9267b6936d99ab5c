// A table whose rows are named by any 64-bit keys and appear when a key is first seen in training: the row from
// (seed, key), the moments of the optimizer beside it. Rules say which keys get a row, which rows go again, and how
// much memory there may be. All functions may be called from several threads; a row is read and written whole. What a
// table holds after a sequence of calls does not depend on the number of threads that worked on each of them.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "core/value.h"
#include "sparse/record_loops.h"
#include "sparse/spin_lock.h"
#include "sparse/table_file.h"
#include "sparse/table_shard.h"

namespace anabranch::io {
class AtomicFile;
class FileSet;
}  // namespace anabranch::io

namespace anabranch::sparse {

class GrowableTable {
 public:
  // InvalidArgument when the options contradict each other.
  GrowableTable(std::string name, const TableOptions& options);
  GrowableTable(const GrowableTable&) = delete;

  // The table that a variable holds; null when it holds something else.
  static std::shared_ptr<GrowableTable> of(const Value& value);
  static void put(Value* value, std::shared_ptr<GrowableTable> table);

  const std::string& name() const { return name_; }
  const TableOptions& options() const { return options_; }

  // Rows of n keys into out; zeros for keys without a row. `scratch` is the caller's, kept between calls for its
  // memory.
  void pull(const int64_t* keys, int64_t n, const Pull& how, float* out, KeyOrder* scratch, Parallel* parallel);
  // Updates the rows of n keys, which may repeat, by rule, rate, betas and epsilon of `how` from n gradients. Keys
  // without a row are passed over. Rows that were not seen for too long go.
  struct Scratch {
    KeyOrder order;
    std::vector<RecordGroup> groups;
    std::vector<int32_t> next;
  };
  void update(const int64_t* keys, int64_t n, const float* grads, const RecordUpdate& how, Scratch* scratch,
              Parallel* parallel);

  TableStats stats();
  // fn(address, bytes) for every piece of memory.
  void each_piece(const std::function<void(const void*, int64_t)>& fn);
  // All keys, ascending.
  std::vector<int64_t> keys();
  // Adds the file of a table: its options and its rows, with their moments or without.
  void save(const std::string& path, bool with_moments, io::FileSet* files);
  // Takes the rows of a file in place of its own, and its own rules stay. Moments of a file without any begin anew; a
  // table without any leaves them. Nothing changes unless all of it can be read and fits.
  // `mine`: which of its keys; null: all.
  void load(const std::string& path, const std::function<bool(int64_t key)>& mine = {});

  // ---- piece by piece: rows with their moments, as they stand in a file
  static constexpr int kMostBits = 40;
  TableHeader header();  // without the number of rows
  // How many bits cut `bytes` of rows into parts of at most `part_bytes`, by the mean.
  static int bits_for(int64_t bytes, int64_t part_bytes);
  // Rows whose hash begins with the `bits` bits of `part`, by ascending key. All parts together are the table.
  void append_rows(uint64_t part, int bits, std::string* to);
  // Before many rows are added: room in the index for as many.
  void reserve(int64_t rows);
  // ShapeMismatch unless they are whole rows. A key that is there takes the new row.
  void add_rows(const char* rows, size_t bytes);

  // ---- all rows of one moment, while the table goes on
  // The moment is when this is made: the caller keeps updates away until then. Rows that are looked up in training for
  // the first time meanwhile may be there or not, as they were made.
  class Cut {
   public:
    // `slice_bytes`: of rows, by the mean; nobody waits for more at a time. Unavailable: there is a cut of it already.
    Cut(std::shared_ptr<GrowableTable> table, int64_t slice_bytes);
    ~Cut();
    Cut(const Cut&) = delete;
    // Appends some rows, by no order; false when there are no more. Each row of the moment comes once. Unavailable: the
    // table was loaded meanwhile.
    bool next(std::string* rows);

   private:
    const std::shared_ptr<GrowableTable> table_;
    size_t shard_ = 0;  // that is being written
    std::vector<TableShard::Entry> scratch_;
  };

  // A table made by the options of a file, with its rows.
  static std::shared_ptr<GrowableTable> open(const std::string& name, const std::string& path,
                                             const std::function<bool(int64_t key)>& mine = {});

 private:
  static constexpr int64_t kShards = KeyOrder::kShards;
  struct Part {
    SpinLock lock;
    std::unique_ptr<TableShard> shard;
  };
  class HoldAll;

  void tell_what_was_dropped();
  void write(bool with_moments, io::AtomicFile* file);

  const std::string name_;
  const TableOptions options_;
  std::shared_ptr<RecordMemory> memory_;
  std::array<Part, size_t{kShards}> parts_;
  std::atomic<int64_t> tell_at_{1};  // keys dropped
};

// Keeps everybody else out of a table.
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
