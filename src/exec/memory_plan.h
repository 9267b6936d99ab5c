// Memory of temporaries: one arena, cut into blocks. Temporaries that do not live at the same time take the same block:
// those of a plan (here) as those of the turns of a sub-block (exec/block_memory.h). Where nodes may run in parallel a
// block is handed on only after a gap of nodes, and the new writer waits for the old readers by edges of its own, so
// that sharing neither races nor costs parallelism. Each place has an arena of its own. On devices, where the order of
// a queue costs nothing, blocks are handed on at once.
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
  int first = -1, last = -1;  // nodes that touch it first (a writer) and last
};

// Where in an arena each of them lies. Those whose lives are more than `gap` nodes apart may lie in one place; of large
// ones (kLargeBytes) a few nodes are enough: their memory costs more than the nodes that would rather not wait.
struct MemoryLayout {
  std::vector<int64_t> offsets, capacities;  // by lifetime
  std::vector<int> after;                    // by lifetime: who lay there before; -1: nobody
  int64_t bytes = 0, unshared_bytes = 0;     // of the arena, and what they would take without sharing
};
inline constexpr int64_t kLargeBytes = int64_t{4} << 20;
MemoryLayout lay_out_memory(const std::vector<Lifetime>& lifetimes, int gap);

struct Temporary {
  Value* value = nullptr;
  int first = -1, last = -1;  // nodes that touch it first (a writer) and last
  std::vector<int> users;     // all nodes that touch it
  Place place = {};           // where the graph has it
  int within = -1;            // the one, by its number, of which its first user hands on the elements as they lie
};

class MemoryPlan {
 public:
  // While shape functions run, temporaries of devices and pinned ones take shapes and no memory: all of them side by
  // side may be more than there is.
  class Shaping {
   public:
    explicit Shaping(const std::vector<Temporary>& temporaries);
    ~Shaping();  // those that were not placed hold nothing
    Shaping(const Shaping&) = delete;

   private:
    const std::vector<Temporary>& temporaries_;
  };

  // Places the tensors, whose shapes are known, in new arenas. `parallel`: nodes may run at the same time.
  // Returns edges (from, to) that the plan needs in addition. Where there is no room, placing() says at which place.
  std::vector<std::pair<int, int>> place(const std::vector<Temporary>& temporaries, bool parallel);
  Place placing() const { return placing_; }
  // Some temporary has outgrown its block, or none was placed yet.
  bool outgrown(const std::vector<Temporary>& temporaries) const;
  // None has: after shapes were inferred, those of devices take their blocks again.
  void take_blocks(const std::vector<Temporary>& temporaries) const;
  void drop();

  bool holds(const void* p) const {
    return std::any_of(arenas_.begin(), arenas_.end(), [&](auto& a) { return a.holds(p); });
  }
  int64_t bytes() const;  // of all places
  int64_t bytes(Place place) const;
  int64_t unshared_bytes() const { return unshared_bytes_; }  // what the temporaries would take without sharing

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
  // Temporaries that lie on each other: the first of them takes a block.
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
