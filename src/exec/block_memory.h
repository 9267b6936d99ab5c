// Memory of what the ops of a sub-block alone see and no turn hands to the next one. Turns of a block never run at the
// same time, so those values of all its frames lie in one arena, and in it those that do not live at the same time in
// one place: a frame that stays for a gradient holds memory for what others read, and for nothing else. Not
// thread-safe: used by the thread that runs the turn.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "exec/block_frame.h"
#include "exec/memory_plan.h"

namespace anabranch {

class BlockMemory {
 public:
  // What takes the memory of another one's (the pass reuse_input) is one use with it.
  struct Use {
    std::vector<size_t> places;  // block_code.h
    int first, last;             // nodes that touch it first (a writer) and last
  };
  void set_uses(std::vector<Use> uses) {
    uses_ = std::move(uses);
    wanted_.assign(uses_.size(), 0);
  }
  // Before a turn on this frame: what is known to be needed lies in the arena.
  void lend(BlockFrame& frame) const {
    if (frame.lent != arenas_) [[unlikely]]
      place(frame);
  }
  // After a turn that made shapes: what has outgrown its place gets a larger one.
  void settle(BlockFrame& frame);
  void drop();  // no frame is used again

  int64_t bytes() const { return arena_bytes_; }
  int64_t unshared_bytes() const { return layout_.unshared_bytes; }

 private:
  bool release(BlockFrame& frame);
  bool outgrown(const BlockFrame& frame) const;
  void place(BlockFrame& frame) const;

  std::vector<Use> uses_;
  std::vector<int64_t> wanted_;  // bytes, by use; 0: no turn has needed memory for it
  MemoryLayout layout_;
  std::shared_ptr<void> arena_;
  int64_t arena_bytes_ = 0;
  int arenas_ = 0;  // made so far, and other layouts of one
};

}  // namespace anabranch
