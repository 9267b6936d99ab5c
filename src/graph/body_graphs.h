// The graphs of sub-blocks, after passes. In them, a name is one variable, because the ops of a block write outer
// variables in place, and an iteration sees the results of the previous one. Passes must keep variables that code
// outside of the block may use, or that one iteration passes to the next. Created once for all replicas.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/pass.h"
#include "ir/outer_names.h"

namespace anabranch {

class BodyGraphs {
 public:
  // Borrows the program. disabled: as in PassContext.
  BodyGraphs(const ir::Program& program, const BuildStrategy& build, std::string disable, int replicas);

  // Returns the graph of a block. The graphs of its gradient block and of nested blocks are created first.
  const Graph& of(int block);
  // Whether only the ops of the block use the variable, after passes have removed ops from other blocks. Such a
  // variable may have no value.
  bool is_private(int block, const std::string& name) const;
  // Whether other blocks need more of a variable of the block than its shape.
  bool keeps_elements(int block, const std::string& name) const;
  bool trusts_shapes() const { return trusts_shapes_; }  // as PassReport says for one of them
  size_t revised() const { return revised_; }            // mentions of names that passes made it count again
  std::string explain() const;                           // a line per block: what passes have done in it

 private:
  struct Mentions {
    std::set<int> blocks;    // blocks whose ops name it,
    std::set<int> elements;  // and those of them that need more than its shape
  };
  void note_mentions(const ir::Op& op, int block, const std::set<std::string>& only_shapes);
  void note_mentions_again(int block, const Graph& graph);
  Graph make(const ir::Block& block);
  void add_node(const ir::Block& block, int index, Graph& graph);
  int var(const ir::Block& block, const std::string& name, Graph& graph) const;
  void note_run(int block, const std::vector<PassReport>& reports, size_t ops, size_t nodes);

  const ir::Program& program_;
  const BuildStrategy build_;
  const std::string disabled_;
  const int replicas_;
  OuterNamesOf outer_names_;
  std::unordered_map<std::string, Mentions> mentioned_;  // by name
  std::map<int, std::vector<Mentions*>> mentioned_in_;   // by block: a program of many blocks has many names
  std::map<int, std::vector<int>> inner_;                // by block: those that its ops run, and its gradients
  std::set<int> begun_;                                  // of these
  std::map<int, Graph> made_;
  std::map<int, std::string> lines_;
  size_t revised_ = 0;
  bool trusts_shapes_ = false;
};

}  // namespace anabranch
