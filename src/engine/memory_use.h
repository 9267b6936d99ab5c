// Which memory holds what: one entry for each tensor that a program or a scope keeps. Entries may overlap, for memory
// is handed on inside a plan; whoever adds them up looks at the addresses.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/scope.h"

namespace anabranch {

struct MemoryUse {
  enum Kind { kKept, kTemporary, kFed };  // kept: in a scope, or a replica's copy of what is
  std::string name;
  int replica = 0;
  Kind kind = kKept;
  uint64_t address = 0;
  int64_t bytes = 0;
  Place place = {};
};

// Appends what a value holds: nothing, a tensor, sparse rows, each tensor of an array.
void add_memory(const Value& value, const std::string& name, int replica, MemoryUse::Kind kind,
                std::vector<MemoryUse>* out);
std::vector<MemoryUse> memory_of(const Scope& scope);  // without its parent

}  // namespace anabranch
