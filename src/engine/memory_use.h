// Lists the owners of memory: one entry per tensor that a program or a scope keeps. Entries may overlap, because a plan
// reuses memory; a sum must compare the addresses.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/scope.h"

namespace anabranch {

struct MemoryUse {
  enum Kind { kKept, kTemporary, kFed };  // kept: in a scope, or a replica's copy of such a value
  std::string name;
  int replica = 0;
  Kind kind = kKept;
  uint64_t address = 0;
  int64_t bytes = 0;
  Place place = {};
};

// Appends the contents of a value: nothing, a tensor, sparse rows, each tensor of an array.
void add_memory(const Value& value, const std::string& name, int replica, MemoryUse::Kind kind,
                std::vector<MemoryUse>* out);
std::vector<MemoryUse> memory_of(const Scope& scope);  // without its parent

}  // namespace anabranch
