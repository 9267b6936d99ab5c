// Blocks and errors by their position in the data, returned in that order for any order of completion. Not thread-safe.
#pragma once
#include <compare>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "data/block.h"

namespace anabranch::data {

struct ChunkPosition {
  int64_t file = 0, chunk = 0;
  auto operator<=>(const ChunkPosition&) const = default;
};

struct Ready {
  std::unique_ptr<Block> block;
  std::exception_ptr error;
};

class InOrder {
 public:
  explicit InOrder(size_t files) : chunks_(files, -1) {}

  void put(ChunkPosition place, Ready ready) {
    if (ready.error && needed(place)) error_at_ = place;
    waiting_.emplace(place, std::move(ready));
  }
  void end_of_file(int64_t file, int64_t chunks) { chunks_[static_cast<size_t>(file)] = chunks; }
  // Whether this position will be reached: no earlier error is known.
  bool needed(ChunkPosition place) const { return !error_at_ || place < *error_at_; }

  bool ready() {
    while (next_.file < static_cast<int64_t>(chunks_.size()) &&
           chunks_[static_cast<size_t>(next_.file)] == next_.chunk) {
      next_ = {next_.file + 1, 0};
    }
    return waiting_.count(next_) != 0;
  }
  // Call it after ready().
  Ready take() {
    auto found = waiting_.extract(next_);
    ++next_.chunk;
    return std::move(found.mapped());
  }

 private:
  std::vector<int64_t> chunks_;  // of each file; -1: unknown
  std::map<ChunkPosition, Ready> waiting_;
  std::optional<ChunkPosition> error_at_;
  ChunkPosition next_;
};

}  // namespace anabranch::data
