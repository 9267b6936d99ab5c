// Memory of values that only the ops of a sub-block use and that no iteration passes to the next. Iterations of a block
// never run concurrently, so these values share one arena across all frames, and values with disjoint lifetimes share
// its blocks: a frame that is kept for a gradient holds memory only for values that others read. Not thread-safe: used
// by the thread that runs the iteration.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "exec/block_frame.h"
#include "exec/memory_plan.h"

namespace anabranch {

class BlockMemory {
 public:
  // A value that takes the memory of another one (pass reuse_input) shares its entry.
  struct Use {
    std::vector<size_t> places;  // block_code.h
    int first, last;             // first (a writer) and last node that use it
  };
  void set_uses(std::vector<Use> uses) {
    uses_ = std::move(uses);
    needed_.assign(uses_.size(), 0);
  }
  // Before an iteration on this frame: places values of known size in the arena.
  void lend(BlockFrame& frame) const {
    if (frame.lent != arenas_) [[unlikely]]
      place(frame);
  }
  // After an iteration that computed shapes: enlarges blocks that were too small.
  void settle(BlockFrame& frame);
  void drop();  // frees the arena; no frame may be used afterwards

  int64_t bytes() const { return arena_bytes_; }
  int64_t unshared_bytes() const { return layout_.unshared_bytes; }

 private:
  bool release(BlockFrame& frame);
  bool outgrown(const BlockFrame& frame) const;
  void place(BlockFrame& frame) const;

  std::vector<Use> uses_;
  std::vector<int64_t> needed_;  // bytes, by use; 0: no iteration has needed memory for it
  MemoryLayout layout_;
  std::shared_ptr<void> arena_;
  int64_t arena_bytes_ = 0;
  int arenas_ = 0;  // arenas created, and new layouts of one
};

}  // namespace anabranch
