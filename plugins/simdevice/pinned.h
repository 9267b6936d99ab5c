// Pinned memory, the host side of copies. The simulation cannot observe accesses by the host, but it detects their
// traces: the source of a copy must not change until the copy has read it, its destination holds poison until then, and
// memory of a pending copy must not be released.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "audit.h"

namespace anabranch::simdevice {

class Pinned {
 public:
  struct Range {  // of a copy that has not run
    const char* begin;
    size_t bytes;
    bool writes;
    const std::string* label;
  };

  static constexpr std::align_val_t kAlignment{256};

  void* allocate(size_t bytes);
  // AB_FAULT if a copy uses it, or did and `clock` does not include it. No clock: nothing runs.
  void release(void* p, const Clock* clock);
  void check(const void* p, size_t bytes) const;

  // A copy was enqueued. Returns whether no other pending copy writes (or, for a writer, uses) the memory.
  bool add(const Range& range);
  // It has run or was dropped. Returns whether its result will be overwritten before any pending read: then the host
  // must not read it either.
  bool remove(const Range& range);
  Access touch(const void* p, size_t bytes, ab_access how, const Access& now, const Clock& clock);
  std::string left() const;

 private:
  struct Free {
    void operator()(char* p) const { operator delete[](p, kAlignment); }
  };
  struct Block {
    std::unique_ptr<char, Free> memory;
    size_t bytes = 0;
    Audit audit;
    std::vector<Range> waiting;
  };

  Block& find(const void* p, size_t bytes);
  static bool apart(const Range& a, const Range& b) {
    return a.begin + a.bytes <= b.begin || b.begin + b.bytes <= a.begin;
  }

  std::map<const char*, Block> blocks_;
};

uint64_t sum_of(const void* p, size_t bytes);  // changes with any byte

}  // namespace anabranch::simdevice
