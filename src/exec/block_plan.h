// Sub-blocks of control flow, made ready to run inside the kernel of the op that owns them. Everything in a sub-block
// is dynamic: shapes are inferred as it runs. Its variables keep their values after a run, because the gradient block
// reads them.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "ir/program.h"
#include "opdef/kernel_context.h"

namespace anabranch {

// The blocks of one replica of one plan.
class BlockSet {
 public:
  using Outer = std::function<Value*(const std::string&)>;  // a variable of block 0; null when there is none
  BlockSet(const ir::Program& program, Outer outer, uint64_t seed);
  std::shared_ptr<BlockRunner> runner(int block);  // made at first use, shared by all ops that name the block
  BlockFactory factory();

 private:
  friend class BlockPlan;
  const ir::Program& program_;
  Outer outer_;
  uint64_t seed_;
  std::map<int, std::shared_ptr<BlockRunner>> made_;
};

}  // namespace anabranch
