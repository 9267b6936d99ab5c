// Sub-blocks of control flow, made ready to run inside the kernel of the op that owns them. Everything in a sub-block
// is dynamic: shapes are inferred as it runs. All that depends on the program is made when the plan is: a run only
// reads the set.
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
  // A variable of block 0, as the op that runs the block sees it; null when there is none.
  using Outer = std::function<Value*(const std::string&)>;
  // nodes: gets what ops of these blocks there are; the first one has this number in traces. Borrowed by prepare().
  struct Options {
    std::shared_ptr<BodyGraphs> bodies;
    uint64_t seed = 0;
    int replica = 0, first_node = 0;
    std::vector<InnerNode>* nodes = nullptr;
  };
  BlockSet(const ir::Program& program, Options options);
  ~BlockSet();
  // Makes a block of an op of block 0 ready, with those that its ops name.
  void prepare(int block, const Outer& outer) { make(block, outer, nullptr); }
  std::shared_ptr<BlockRunner> runner(int block) const;
  // For stall reports, from any thread: lines that say where in this block a run is; empty: it has not begun.
  std::string where(int block) const;
  // The variables of all frames that there are, and freeing these; between runs.
  using Visit = std::function<void(const std::string& name, const Value& value)>;
  void each_value(const Visit& visit) const;
  void drop();
  struct Bytes {
    int64_t held = 0, unshared = 0;
  };
  // Of what the ops of single blocks alone see (exec/block_memory.h), and what it would take without sharing in a turn.
  Bytes private_bytes() const;
  // The blocks that are gradients of this one in the program.
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
