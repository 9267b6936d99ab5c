// Destinations of a step's feeds, and the signatures for which its plan was laid out. A fed tensor's memory is borrowed
// until release(), unless the value outlives the run or some op writes it: then it is copied. A tensor on a device
// stays there if only copies to that device read it; otherwise it is copied to the host.
#pragma once
#include <string>
#include <vector>

#include "core/value.h"
#include "engine/feed.h"
#include "engine/memory_use.h"

namespace anabranch {

class FeedSlots {
 public:
  // Adds the next variable of this replica; null if no op uses it. `keeps`: the caller's memory must not be borrowed.
  // `needed`: the only place where it is used.
  void add(size_t replica, Value* value, bool keeps, Place needed);
  bool bind(const Slices& feeds);  // true if shapes changed
  void release();
  void add_memory(const std::vector<std::string>& names, std::vector<MemoryUse>* out) const;  // of the last batch

 private:
  struct Slot {
    Value* value;
    bool keeps;
    Place needed;
    Shape shape = {};  // for which the plan was laid out
    DType dtype = {};
    LoDRef lod = {};
    bool laid_out = false;
  };
  std::vector<std::vector<Slot>> slots_;  // by replica
};

}  // namespace anabranch
