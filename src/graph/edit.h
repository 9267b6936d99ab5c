// Tools of passes: the readers and writers of variables, a builder of nodes, and an edit that replaces several nodes
// with one.
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace anabranch {

// The variables in a slot, -1 for missing arguments; empty if the op has no such slot.
std::span<const int> input_vars(const GraphNode& node, std::string_view slot);
std::span<const int> output_vars(const GraphNode& node, std::string_view slot);
// The variable in a slot that holds exactly one; -1 otherwise.
int input_var(const GraphNode& node, std::string_view slot);
int output_var(const GraphNode& node, std::string_view slot);

// The variable of the argument of this name, in arguments of these names; -1 if there is none.
int var_named(std::span<const int> vars, const std::vector<std::string>& names, const std::string& name);
// The block that the node runs, from its attribute sub_block.
inline int block_of(const GraphNode& node) { return node.op->attr<BlockRef>("sub_block").idx; }
// Reads and writes only its arguments.
inline bool is_plain(const GraphNode& node) { return node.more_reads.empty() && node.more_writes.empty(); }
// Whether the variable exists and is a float32 tensor.
bool is_float(const Graph& graph, int var);

// Parameters and gradients of op_role_var, of these nodes in order.
std::vector<std::string> role_vars_of(const Graph& graph, const std::vector<int>& nodes);

// Replaces the argument `out` of the node's inputs by `x`.
void read_instead(Graph& graph, GraphNode& node, int out, int x);

// Clears GraphVar::dynamic of shapes that no longer depend on values, because the op that made them dynamic is gone.
void settle_dynamic(Graph& graph);

// Readers and writers in the graph at construction: nodes by index, each once, ascending.
class Uses {
 public:
  explicit Uses(const Graph& graph);
  std::span<const int> readers(int var) const { return readers_.of(var); }
  std::span<const int> writers(int var) const { return writers_.of(var); }
  // The only node that writes `var`, or the only one that reads it; -1 if there are none or several.
  int writer(int var) const { return writers(var).size() == 1 ? writers(var)[0] : -1; }
  int reader(int var) const { return readers(var).size() == 1 ? readers(var)[0] : -1; }
  // One node computes the value, and it is not visible outside of the graph.
  bool is_inner(int var) const;
  // An internal tensor with one reader: a node that replaces both need not compute it.
  bool is_private(int var) const;

 private:
  // Nodes by variable: one list for all variables, because most passes build it.
  struct Nodes {
    std::vector<int> starts, ends, nodes;
    std::span<const int> of(int var) const { return std::span(nodes).subspan(starts[var], ends[var] - starts[var]); }
  };
  template <class VarsOf> static Nodes list(const Graph& graph, VarsOf vars_of);

  const Graph& graph_;
  Nodes readers_, writers_;
};

// Whether all readers of `out`, which node i computes as a copy of `x`, may read `x` instead.
bool may_read_instead(const Graph& graph, const Uses& uses, int i, int x, int out);

// Builds a node, slot by slot. Slots that are not set are empty, attributes that are not set get their defaults.
class NodeBuilder {
 public:
  // An op of this type with the replica, role, position and user's line of `like`.
  NodeBuilder(const Graph& graph, std::string type, const GraphNode& like)
      : NodeBuilder(graph, std::move(type), like.op, like.index, like.replica) {}
  NodeBuilder(const Graph& graph, std::string type, ir::OpRef like, int index, int replica);
  NodeBuilder& copy(std::initializer_list<const char*> attrs);  // of the op of `like`, if it has them
  NodeBuilder& copy_all();                                      // attributes of the op of `like`
  NodeBuilder& attr(const std::string& name, Attr value);
  NodeBuilder& in(std::string slot, int var) { return in(std::move(slot), some(var)); }  // -1: none
  NodeBuilder& in(std::string slot, std::vector<int> vars);                              // -1: a missing argument
  NodeBuilder& out(std::string slot, int var) { return out(std::move(slot), some(var)); }
  NodeBuilder& out(std::string slot, std::vector<int> vars);
  GraphNode done();

 private:
  using Slots = std::vector<std::pair<std::string, std::vector<int>>>;
  static std::vector<int> some(int var) { return var < 0 ? std::vector<int>() : std::vector<int>{var}; }

  const Graph& graph_;
  const ir::OpRef like_;
  std::shared_ptr<ir::Op> op_ = std::make_shared<ir::Op>();
  GraphNode node_;
  Slots ins_, outs_;
};

// Replaces nodes, identified by their indices in the original graph; the graph changes at commit().
class GraphEdit {
 public:
  explicit GraphEdit(Graph& graph) : uses(graph), graph_(graph), gone_(graph.nodes.size(), 0) {}

  const Uses uses;
  bool gone(int node) const { return gone_[node] != 0; }
  // Whether the nodes `parts` (ascending) may be fused at the position of the first: no node between them writes what
  // the later ones use, or reads what they write.
  bool may_gather(const std::vector<int>& parts) const;
  // `node` replaces the first part; messages refer to all parts.
  void replace(const std::vector<int>& parts, GraphNode node);
  // `node` replaces the node at this position.
  void put(int at, GraphNode node);
  // `node` is inserted after this position.
  void add_after(int at, GraphNode node) { after_.emplace(at, std::move(node)); }
  void remove(int node) { gone_[node] = 1; }
  void commit();

 private:
  std::vector<int> shapes_read_by(const std::vector<int>& parts) const;

  Graph& graph_;
  std::vector<char> gone_;
  std::multimap<int, GraphNode> after_;
};

}  // namespace anabranch
