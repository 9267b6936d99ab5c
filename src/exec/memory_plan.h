// Memory of temporaries: one arena, cut into blocks. Temporaries with disjoint lifetimes share a block, both in a plan
// (here) and in the iterations of a sub-block (exec/block_memory.h). Where nodes may run in parallel, a block is reused
// only after a gap of nodes, and added edges make the new writer wait for the old readers, so that sharing neither
// races nor costs parallelism. Each place has its own arena. On devices, where the order of a queue is free, blocks are
// reused at once.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/value.h"

namespace anabranch {

struct Lifetime {
  int64_t bytes = 0;
  int first = -1, last = -1;  // first (a writer) and last node that use it
};

// Offsets in an arena. Temporaries whose lifetimes are more than `gap` nodes apart may share a block; for large ones
// (kLargeBytes) a few nodes suffice, because their memory costs more than some lost parallelism.
struct MemoryLayout {
  std::vector<int64_t> offsets, capacities;  // by lifetime
  std::vector<int> after;                    // by lifetime: previous user of the block; -1: none
  int64_t bytes = 0, unshared_bytes = 0;     // of the arena, and the total without sharing
};
inline constexpr int64_t kLargeBytes = int64_t{4} << 20;
MemoryLayout lay_out_memory(const std::vector<Lifetime>& lifetimes, int gap);

struct Temporary {
  Value* value = nullptr;
  int first = -1, last = -1;  // first (a writer) and last node that use it
  std::vector<int> users;     // all nodes that use it
  Place place = {};           // its location in the graph
  int within = -1;            // number of the temporary whose elements its first user passes on unchanged
};

class MemoryPlan {
 public:
  // While shape functions run, device and pinned temporaries get shapes but no memory, because the sum of their sizes
  // may exceed it.
  class Shaping {
   public:
    explicit Shaping(const std::vector<Temporary>& temporaries);
    ~Shaping();  // those without a block hold nothing
    Shaping(const Shaping&) = delete;

   private:
    const std::vector<Temporary>& temporaries_;
  };

  // Places the tensors, whose shapes are known, in new arenas. `parallel`: nodes may run concurrently. Returns
  // additional edges (from, to) for the plan. If there is no room, placing() names the place.
  std::vector<std::pair<int, int>> place(const std::vector<Temporary>& temporaries, bool parallel);
  Place placing() const { return placing_; }
  // Whether a temporary has outgrown its block, or none was placed yet.
  bool outgrown(const std::vector<Temporary>& temporaries) const;
  // If none has: gives device temporaries their blocks again after shape inference.
  void take_blocks(const std::vector<Temporary>& temporaries) const;
  void drop();

  bool holds(const void* p) const {
    return std::any_of(arenas_.begin(), arenas_.end(), [&](auto& a) { return a.holds(p); });
  }
  int64_t bytes() const;  // of all places
  int64_t bytes(Place place) const;
  int64_t unshared_bytes() const { return unshared_bytes_; }  // total of the temporaries without sharing

 private:
  struct Arena {
    Place place;
    int64_t bytes = 0;
    std::shared_ptr<void> memory;
    bool holds(const void* p) const {
      const auto* begin = static_cast<const char*>(memory.get());
      return begin && p >= begin && p < begin + bytes;
    }
  };
  struct Block {
    void* begin = nullptr;
    size_t capacity = 0;
  };
  // Aliased temporaries: the first of them gets a block.
  struct Pile {
    std::vector<size_t> held;
    Lifetime life;
  };
  static std::vector<Pile> piles_at(Place place, const std::vector<Temporary>& temporaries);
  Arena& arena_at(Place place);
  void fill_arena(Place place, bool parallel, const std::vector<Temporary>& temporaries,
                  std::vector<std::pair<int, int>>* edges);

  Place placing_ = {};
  std::vector<Arena> arenas_;
  std::vector<Block> blocks_;  // by temporary
  int64_t unshared_bytes_ = 0;
};

}  // namespace anabranch
