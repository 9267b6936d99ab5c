// What the ops of a block read and write outside of it.
#pragma once
#include <map>
#include <set>
#include <string>

#include "ir/program.h"

namespace anabranch {

struct OuterNames {
  std::set<std::string> reads, writes;
};

// Names that a block, or a block below it, reads and writes and that belong to none of them. Each block of the program
// is looked at once.
class OuterNamesOf {
 public:
  explicit OuterNamesOf(const ir::Program& program) : program_(program) {}
  const OuterNames& of(int block);

 private:
  const ir::Program& program_;
  std::map<int, OuterNames> known_;
  std::set<int> open_;  // blocks at work: one that is met again contains itself
};

}  // namespace anabranch
