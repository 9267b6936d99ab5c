// Sub-blocks of control flow, made ready to run inside the kernel of the op that owns them. Everything in a sub-block
// is dynamic: shapes are inferred as it runs. Its variables keep their values after a run, because the gradient block
// reads them. Everything is made when the plan is: a run only reads the set.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "ir/program.h"
#include "opdef/kernel_context.h"

namespace anabranch {

class BlockPlan;

// The blocks of one replica of one plan.
class BlockSet {
 public:
  // A variable of block 0, as the op that runs the block sees it; null when there is none.
  using Outer = std::function<Value*(const std::string&)>;
  BlockSet(const ir::Program& program, uint64_t seed) : program_(program), seed_(seed) {}
  // Makes a block ready, with those that its ops name.
  void prepare(int block, const Outer& outer);
  std::shared_ptr<BlockRunner> runner(int block) const;
  BlockFactory factory() const;

 private:
  friend class BlockPlan;
  const ir::Program& program_;
  uint64_t seed_;
  std::map<int, std::shared_ptr<BlockPlan>> made_;
};

}  // namespace anabranch
