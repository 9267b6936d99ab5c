// The tools of passes: which nodes read and write the variables of a graph, nodes made slot by slot, and an edit that
// puts one node in the place of several.
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

// The variables in a slot, -1 for arguments that are not there; none when the op has no such slot.
std::span<const int> input_vars(const GraphNode& node, std::string_view slot);
std::span<const int> output_vars(const GraphNode& node, std::string_view slot);
// The variable in a slot that holds exactly one; -1 otherwise.
int input_var(const GraphNode& node, std::string_view slot);
int output_var(const GraphNode& node, std::string_view slot);

// The variable of the argument of this name, in arguments of these names; -1 when there is none.
int var_named(std::span<const int> vars, const std::vector<std::string>& names, const std::string& name);
// The block that the node runs, by its attribute sub_block.
inline int block_of(const GraphNode& node) { return node.op->attr<BlockRef>("sub_block").idx; }
// Reads and writes its arguments alone.
inline bool is_plain(const GraphNode& node) { return node.more_reads.empty() && node.more_writes.empty(); }
// There is such a variable, a tensor of float32.
bool is_float(const Graph& graph, int var);

// Parameters and gradients of op_role_var, of these nodes in their order.
std::vector<std::string> role_vars_of(const Graph& graph, const std::vector<int>& nodes);

// Where the node reads `out` as an argument, it reads `x`.
void read_instead(Graph& graph, GraphNode& node, int out, int x);

// Takes GraphVar::dynamic back where shapes depend on values no more, because an op has gone from which that came.
void settle_dynamic(Graph& graph);

// As the graph was when this was made: nodes by their place in it, each once, ascending.
class Uses {
 public:
  explicit Uses(const Graph& graph);
  const std::vector<int>& readers(int var) const { return readers_[var]; }
  const std::vector<int>& writers(int var) const { return writers_[var]; }
  // The one node that writes `var`, or the one that reads it; -1 when there are none or several.
  int writer(int var) const { return writers_[var].size() == 1 ? writers_[var][0] : -1; }
  int reader(int var) const { return readers_[var].size() == 1 ? readers_[var][0] : -1; }
  // One node makes the value and nobody outside of the graph sees it.
  bool is_inner(int var) const;
  // An inner tensor that one node reads: a node that stands for both need not make it.
  bool is_private(int var) const;

 private:
  const Graph& graph_;
  std::vector<std::vector<int>> readers_, writers_;
};

// Whether everybody who reads `out`, which node i makes with the value of `x`, may read `x` instead.
bool may_read_instead(const Graph& graph, const Uses& uses, int i, int x, int out);

// Makes a node, slot by slot. Slots that are not given are empty, attributes that are not set get their defaults.
class NodeBuilder {
 public:
  // An op of this type with the replica, the role, the place and the user's line of `like`.
  NodeBuilder(const Graph& graph, std::string type, const GraphNode& like)
      : NodeBuilder(graph, std::move(type), like.op, like.index, like.replica) {}
  NodeBuilder(const Graph& graph, std::string type, ir::OpRef like, int index, int replica);
  NodeBuilder& copy(std::initializer_list<const char*> attrs);  // of the op of `like`, as far as it has them
  NodeBuilder& copy_all();                                      // attributes of the op of `like`
  NodeBuilder& attr(const std::string& name, Attr value);
  NodeBuilder& in(std::string slot, int var) { return in(std::move(slot), some(var)); }  // -1: none
  NodeBuilder& in(std::string slot, std::vector<int> vars);  // -1: an argument that is not there
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

// Nodes are replaced by their places in the graph as it was at the beginning; the graph changes at commit().
class GraphEdit {
 public:
  explicit GraphEdit(Graph& graph) : uses(graph), graph_(graph), gone_(graph.nodes.size(), 0) {}

  const Uses uses;
  bool gone(int node) const { return gone_[node] != 0; }
  // Whether the nodes `parts` (ascending) may become one in the place of the first of them: nothing between writes what
  // the later ones touch, or reads what they write.
  bool may_gather(const std::vector<int>& parts) const;
  // `node` takes the place of the first part; it stands for all of them in messages.
  void replace(const std::vector<int>& parts, GraphNode node);
  // `node` stands at this place, whatever was there.
  void put(int at, GraphNode node);
  // `node` comes to stand behind this place.
  void add_behind(int at, GraphNode node) { behind_.emplace(at, std::move(node)); }
  void remove(int node) { gone_[node] = 1; }
  void commit();

 private:
  std::vector<int> shapes_read_by(const std::vector<int>& parts) const;

  Graph& graph_;
  std::vector<char> gone_;
  std::multimap<int, GraphNode> behind_;
};

}  // namespace anabranch
