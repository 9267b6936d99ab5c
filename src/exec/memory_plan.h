// Memory of a plan's temporaries: one arena, cut into blocks. Temporaries that do not live at the same time take the
// same block. Where nodes may run in parallel a block is handed on only after a gap of nodes, and the new writer waits
// for the old readers by edges of its own, so that sharing neither races nor costs parallelism.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/value.h"

namespace anabranch {

struct Temporary {
  Value* value = nullptr;
  int first = -1, last = -1;  // nodes that touch it first (a writer) and last
  std::vector<int> users;     // all nodes that touch it
};

class MemoryPlan {
 public:
  // Places the tensors, whose shapes are known, in a new arena. `parallel`: nodes may run at the same time.
  // Returns edges (from, to) that the plan needs in addition.
  std::vector<std::pair<int, int>> place(const std::vector<Temporary>& temporaries, bool parallel);
  // Some temporary has outgrown its block, or none was placed yet.
  bool outgrown(const std::vector<Temporary>& temporaries) const;
  void drop();

  bool holds(const void* p) const;
  int64_t bytes() const { return bytes_; }
  int64_t unshared_bytes() const { return unshared_bytes_; }  // what the temporaries would take without sharing

 private:
  std::shared_ptr<void> arena_;
  int64_t bytes_ = 0, unshared_bytes_ = 0;
};

}  // namespace anabranch
