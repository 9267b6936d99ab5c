// Where the feeds of a step go, and what they looked like when its plan was laid out. A fed tensor's memory is borrowed
// until release(), except where the value outlives the run or some op writes it: there it is copied. What lies on a
// device stays there where only copies to that device read it; otherwise it is brought to the host.
#pragma once
#include <string>
#include <vector>

#include "core/value.h"
#include "engine/feed.h"
#include "engine/memory_use.h"

namespace anabranch {

class FeedSlots {
 public:
  // The next variable of this replica; null when no op uses it. `keeps`: the caller's memory must not be borrowed.
  // `wanted`: the only place where somebody wants it.
  void add(size_t replica, Value* value, bool keeps, Place wanted);
  bool bind(const Pieces& feeds);  // true when shapes changed
  void release();
  void add_memory(const std::vector<std::string>& names, std::vector<MemoryUse>* out) const;  // of the last batch

 private:
  struct Slot {
    Value* value;
    bool keeps;
    Place wanted;
    Shape shape = {};  // what the plan was laid out for
    DType dtype = {};
    LoDRef lod = {};
    bool laid_out = false;
  };
  std::vector<std::vector<Slot>> slots_;  // by replica
};

}  // namespace anabranch
