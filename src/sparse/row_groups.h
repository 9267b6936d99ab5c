// Groups the gradients of a batch by row: repeated ids are found by hashing, in chunks that depend on the ids alone, so
// that different workers can process chunks with the same result. Memory is kept between steps. Not thread-safe except
// for group() of different chunks.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "sparse/hash.h"

namespace anabranch::sparse {

class RowGroups {
 public:
  struct Chunk {
    const int64_t* rows = nullptr;   // distinct ids, in order of first appearance
    const int32_t* first = nullptr;  // for each the position of its first appearance
    int64_t count = 0;
  };

  // Partitions the ids into chunks by the highest bits of their hash: up to 64, as many as fit the work. The workers,
  // if there are any, share it.
  void read(const int64_t* ids, int64_t n, Parallel* parallel);
  int64_t chunks() const { return static_cast<int64_t>(starts_.size()) - 1; }
  // Index of the first id of a chunk, if all chunks stand one after another.
  int64_t start(int64_t chunk) const { return starts_[static_cast<size_t>(chunk)]; }

  // The distinct ids of one chunk; call it once for each chunk and read(). seen(row, position, id, first) is called for
  // every id, in order: `row` is its index in the Chunk, and `first` whether it has not appeared before.
  template <class Seen> Chunk group(int64_t chunk, Seen&& seen);
  // The same; it also links the positions of each id: see next().
  Chunk group(int64_t chunk);
  const int32_t* next() const { return next_.data(); }  // for each position the next one with the same id, -1: none

 private:
  void count(const int64_t* ids, int64_t begin, int64_t end, int64_t* counts);
  void place(const int64_t* ids, int64_t begin, int64_t end, int64_t* at);
  void lay_out(int64_t shares);

  int bits_ = 0;                                // chunks() is 2^bits_
  std::vector<int64_t> starts_, table_starts_;  // of chunks in order_, of their hash tables
  std::vector<int64_t> places_;                 // for each share of the ids, its next place in each chunk
  std::vector<int32_t> order_;                  // positions, chunk after chunk
  std::vector<int32_t> next_, first_, last_;
  std::vector<int64_t> rows_;  // ids of the positions; then, from the start of each chunk on, its distinct ids
  std::vector<int32_t> table_;
  std::vector<uint8_t> chunk_of_;
};

template <class Seen> RowGroups::Chunk RowGroups::group(int64_t chunk, Seen&& seen) {
  const int64_t begin = starts_[chunk], end = starts_[chunk + 1];
  int32_t* table = table_.data() + table_starts_[chunk];
  const int64_t slots = table_starts_[chunk + 1] - table_starts_[chunk];
  const int shift = 64 - std::countr_zero(static_cast<uint64_t>(slots));
  std::fill(table, table + slots, -1);
  int64_t* const all = rows_.data() + begin;
  int64_t* const rows = all;  // distinct ids overwrite those that were read
  int32_t* first = first_.data() + begin;
  int32_t count = 0;
  for (int64_t k = begin; k < end; ++k) {
    const int32_t position = order_[k];
    const int64_t id = all[k - begin];
    // the high bits chose the chunk: the table uses the lower ones
    auto slot = static_cast<int64_t>(hash_id(id) << bits_ >> shift);
    while (table[slot] >= 0 && rows[table[slot]] != id) slot = (slot + 1) & (slots - 1);
    if (const int32_t known = table[slot]; known >= 0) {
      seen(known, position, id, false);
      continue;
    }
    table[slot] = count;
    rows[count] = id;
    first[count] = position;
    seen(count, position, id, true);
    ++count;
  }
  return {rows, first, count};
}

}  // namespace anabranch::sparse
