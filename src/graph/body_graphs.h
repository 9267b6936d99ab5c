// The graphs of sub-blocks, after passes. The ops of a block write outer variables in their place, and a turn finds
// what the one before has left, so a name is one variable here: those that somebody outside of the block may see, and
// those that a turn hands to the next one, are kept as the scope's are. Made once for all replicas.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "ir/outer_names.h"
#include "graph/pass.h"

namespace anabranch {

class BodyGraphs {
 public:
  // Borrows the program. set_aside: as of PassContext.
  BodyGraphs(const ir::Program& program, const BuildStrategy& build, std::string set_aside);

  const Graph& of(int block);
  // Variables of the block that its ops alone see: passes may have left them without a value.
  bool is_private(int block, const std::string& name) const;
  std::string explain() const;  // a line for each block that was made, and what passes have done in it

 private:
  void note_mentions(const ir::Block& block);
  void mention(const std::string& name, int block);
  Graph make(const ir::Block& block);
  void add_node(const ir::Block& block, int index, Graph& graph);
  int var(const ir::Block& block, const std::string& name, Graph& graph) const;
  void note_run(int block, const std::vector<PassReport>& reports, size_t ops, size_t nodes);

  const ir::Program& program_;
  const BuildStrategy build_;
  const std::string set_aside_;
  OuterNamesOf outer_names_;
  std::unordered_map<std::string, int> mentioned_;  // the block whose ops name it, or kSeveral
  std::map<int, Graph> made_;
  std::map<int, std::string> lines_;
};

}  // namespace anabranch
