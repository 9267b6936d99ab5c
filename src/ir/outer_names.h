// Names that the ops of a block read and write outside of it.
#pragma once
#include <map>
#include <set>
#include <string>

#include "ir/program.h"

namespace anabranch {

struct OuterNames {
  std::set<std::string> reads, writes;
};

// Names that a block, or a block inside it, reads and writes and that none of them declares. Each block of the program
// is visited once.
class OuterNamesOf {
 public:
  explicit OuterNamesOf(const ir::Program& program) : program_(program) {}
  const OuterNames& of(int block);

 private:
  const ir::Program& program_;
  std::map<int, OuterNames> known_;
  std::set<int> open_;  // blocks being visited: one that is met again contains itself
};

}  // namespace anabranch
