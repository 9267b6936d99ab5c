// Converts ops of the program to nodes of the graph: the version (versions.h) and replica (ownership.h) of each
// argument, and the variables that sub-blocks use in addition to the arguments.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "graph/graph.h"
#include "graph/ownership.h"
#include "graph/versions.h"
#include "ir/outer_names.h"
#include "opdef/op_def.h"

namespace anabranch {

class ReplicaNodes {
 public:
  // Appends to `graph`. All are borrowed.
  ReplicaNodes(const ir::Program& program, OuterNamesOf& outer_names, Ownership& ownership, Graph& graph);

  // A node on this replica for the op at `index` of block 0: `op`, which is that op or a modified copy. For a node that
  // `updates` a parameter, variables computed by update ops are those of the replica that computed them.
  void add(int index, const ir::OpRef& op, int replica, bool updates);
  // A node created by the engine; its variables come from read() and write().
  void push(GraphNode node);

  // The variable that an op of this replica reads now, and the one for an op that overwrites it.
  int read(const std::string& name, int replica) { return versions_.read(name, replica, describe(name)); }
  int write(const std::string& name, int replica) { return versions_.write(name, replica, describe(name)); }
  int write(const OpDef& def, const std::string& name, int replica);  // for an op of this definition
  // The same for a node that repeats, on this replica, what an op of the program wrote on another one.
  int write_again(const std::string& name, int replica);
  int var(const std::string& name, int replica) { return graph_.var(name, replica, describe(name)); }
  // The variable holds a value before the first node runs.
  void has_value(int var) { versions_.touch(var); }
  const ir::Var& describe(const std::string& name) const;

  // After the last op: copies the last version of a persistable variable to the scope.
  void keep_last_versions();

 private:
  struct Site {  // properties of the op that building a node needs
    const ir::Op& op;
    const OpDef& def;
    int replica;
    bool updates;
  };

  void find_old_reads();
  void find_old_reads_of_block(int gradient, size_t forward, size_t end);
  // A variable of the scope that keeps its shape is written in place, after its readers.
  bool stays(const OpDef& def, const std::string& name, int replica) const;
  int replica_of(const Site& at, const std::string& name) const;
  int read(const Site& at, const std::string& name);
  int read_arg(const Site& at, const ir::Slot& slot, size_t i);
  int updated_input(const Site& at, const GraphNode& node, const std::string& slot, size_t i) const;
  void read_args(const Site& at, GraphNode& node);
  void keep_outputs(const Site& at, GraphNode& node);
  void write_args(const Site& at, GraphNode& node);
  bool starts_array(const Site& at, const std::string& name);
  void push_empty_array(const GraphNode& next_to, int var);
  void push_copy(const GraphNode& next_to, int from, int to);
  int last_node_that_writes(int var) const;

  const ir::Program& program_;
  const ir::Block& block_;
  OuterNamesOf& outer_names_;
  Ownership& ownership_;
  Graph& graph_;
  Versions versions_;
  std::map<std::pair<int, int>, std::map<std::string, int>> seen_;  // by block and replica: outer variables it read
};

}  // namespace anabranch
