// Groups the gradients of a batch by row: repeated ids are found by hashing, in chunks that depend on the ids alone, so
// that different workers can process chunks with the same result. Memory is kept between steps. Not thread-safe except
// for group() of different chunks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

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
  // The distinct ids of one chunk; call it once for each chunk and read().
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

}  // namespace anabranch::sparse
