// Sub-blocks of control flow, prepared to run inside the kernel of the op that owns them. Everything in a sub-block is
// dynamic: shapes are inferred while it runs. Everything that depends on the program is created with the plan: a run
// only reads the set.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/body_graphs.h"
#include "ir/program.h"
#include "opdef/kernel_context.h"

namespace anabranch {

class BlockCode;

// An op of a sub-block, for traces.
struct InnerNode {
  std::string type, text;
  int replica = 0;
};

// The blocks of one replica of one plan.
class BlockSet {
 public:
  // A variable of block 0, as the op that runs the block sees it; null if there is none.
  using Outer = std::function<Value*(const std::string&)>;
  // nodes: receives the ops of these blocks; the first one gets this number in traces. Borrowed by prepare().
  struct Options {
    std::shared_ptr<BodyGraphs> bodies;
    uint64_t seed = 0;
    int replica = 0, first_node = 0;
    std::vector<InnerNode>* nodes = nullptr;
  };
  BlockSet(const ir::Program& program, Options options);
  ~BlockSet();
  // Prepares a block of an op of block 0, and the blocks that its ops name.
  void prepare(int block, const Outer& outer) { make(block, outer, nullptr); }
  std::shared_ptr<BlockRunner> runner(int block) const;
  // For stall reports, from any thread: lines that describe the position of a run in this block; empty: not started.
  std::string where(int block) const;
  // The variables of all existing frames, and a way to free them; between runs.
  using Visit = std::function<void(const std::string& name, const Value& value)>;
  void each_value(const Visit& visit) const;
  void drop();
  struct Bytes {
    int64_t held = 0, unshared = 0;
  };
  // Of values private to single blocks (exec/block_memory.h), and the size without sharing within an iteration.
  Bytes private_bytes() const;
  // The blocks of the program that are gradients of this one.
  const std::vector<int>& gradients_of(int block) const;

 private:
  friend class BlockCode;
  BlockCode& make(int block, const Outer& outer, BlockCode* around);
  int number(const std::string& type, const std::string& text);
  BlockFactory factory() const;

  const ir::Program& program_;
  const Options options_;
  std::map<int, std::vector<int>> gradients_;  // by block
  std::map<int, std::shared_ptr<BlockCode>> made_;
};

}  // namespace anabranch
