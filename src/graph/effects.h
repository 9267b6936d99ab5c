// What the ops of a block read and write outside of it.
#pragma once
#include <set>
#include <string>

#include "ir/program.h"

namespace anabranch {

struct OuterNames {
  std::set<std::string> reads, writes;
};

// Names that block `idx`, or a block below it, reads and writes and that belong to none of them.
OuterNames outer_names(const ir::Program& program, int idx);

}  // namespace anabranch
