// Patterns of passes that fuse ops. A pattern is a chain of ops, each of which reads the result of the one before it.
// It names the variables that the fused op needs, and gives the conditions of each op:
//
//   enum Name { kX, kWeight, kBias };
//   const Pattern layer = down(op("mul").in("X", kX).in("Y", kWeight).makes("Out").when(is_plain, "X is transposed"))
//                             .maybe(op("elementwise_add").reads("X").in("Y", kBias).makes("Out"))
//                             .maybe(op("relu").reads("X").makes("Out"));
//
// The search checks what holds for every pattern: all parts are on one replica and have no sub-blocks; the values
// between them are computed once, are not visible outside of the graph, and have no other readers; and the parts can
// run at the position of the first one. A match leaves out as few optional ops as possible, and the last ones first.
//
// gradient() is the pattern of the gradient ops alone, in the opposite direction. with_gradient() requires that the
// gradient ops of all parts, if there are any, match too; the pass then replaces both.
#pragma once
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "graph/pass.h"

namespace anabranch {

class OpDef;
class Match;

// One op of a pattern. Names are the enumerators of the pass, less than Match::kMostNames.
struct OpPattern {
  using Condition = bool (*)(const Match&, const GraphNode&);

  // A slot with exactly one argument; the gradient op, if it has the slot, must have the same argument there.
  OpPattern& in(const char* slot, int name) { return add(&ins, slot, name); }
  // An optional result. An inner one is read by the parts only.
  OpPattern& out(const char* slot, int name) { return add(&outs, slot, name); }
  OpPattern& inner(const char* slot, int name);
  // The slot with the value of the chain. either(): the first of two that fits; `other` names the other operand.
  OpPattern& reads(const char* slot) { return either(slot, slot, -1); }
  OpPattern& either(const char* slot, const char* or_slot, int other);
  // The result.
  OpPattern& makes(const char* slot);
  // A condition that may use the names of this op and of those before it in the chain. why: for explain(), if it fails.
  OpPattern& when(Condition condition, const char* why);
  // with_gradient(): the operand may need no gradient, which ends the chain of gradient ops here; or the operand may
  // have the gradient of the result, without an op for it.
  OpPattern& may_end_gradient();
  OpPattern& may_pass_gradient();

  struct Slot {
    std::string name, gradient;
    int var;  // the name in the pattern
    bool inner = false;
  };
  OpPattern& add(std::vector<Slot>* slots, const char* slot, int name);
  bool is(const GraphNode& node, bool gradient) const;

  std::vector<std::string> types;
  bool (*kind)(const OpDef&) = nullptr;  // instead of types
  std::vector<Slot> ins, outs, operands;
  Slot result;
  int other = -1;
  std::vector<std::pair<Condition, const char*>> conditions;
  bool optional = false, ends_gradient = false, passes_gradient = false;
};

OpPattern op(std::initializer_list<const char*> types);
inline OpPattern op(const char* type) { return op({type}); }
OpPattern op(bool (*kind)(const OpDef&));

class Pattern {
 public:
  static constexpr size_t kMostOps = 6;
  using Values = bool (*)(const Graph&, int var);

  Pattern& then(OpPattern op) { return add(std::move(op), false); }
  Pattern& maybe(OpPattern op) { return add(std::move(op), true); }
  // A condition of the values between the parts.
  Pattern& each(Values fits, const char* why);
  // The first op alone is a match, too.
  Pattern& or_alone();
  // The gradient ops of the parts are matched with them; no gradient at all is fine, too.
  Pattern& with_gradient();
  // The parts stay where they are: they need not run at one position.
  Pattern& in_place();
  // The gradient ops alone, in the opposite direction.
  Pattern gradient() const;

 private:
  friend class Matcher;
  friend class Search;
  friend Pattern down(OpPattern first);
  friend Pattern up(OpPattern last);
  Pattern& add(OpPattern op, bool optional);

  std::vector<OpPattern> ops_;
  bool down_ = true, of_gradient_ = false, alone_ = false, with_gradient_ = false, in_place_ = false;
  Values values_ = nullptr;
  const char* no_value_ = "";
};

// Chains that are found from their first op, and from their last one.
Pattern down(OpPattern first);
Pattern up(OpPattern last);

// The result of a search: nodes by the position of their op in the pattern, variables by their names; -1: none.
class Match {
 public:
  static constexpr size_t kMostNames = 12;
  Match(const Graph& graph, const Uses& uses, const PassContext& context)
      : graph_(&graph), uses_(&uses), context_(&context) {
    for (auto* nodes : {&at_, &back_, &operands_, &results_}) nodes->fill(-1);
    for (auto* vars : {&vars_, &gradients_}) vars->fill(-1);
  }

  const Graph& graph() const { return *graph_; }
  const Uses& uses() const { return *uses_; }
  const PassContext& context() const { return *context_; }
  const ir::Var& desc(int name) const {
    return graph_->vars[static_cast<size_t>(vars_[static_cast<size_t>(name)])].desc;
  }

  int operator[](int name) const { return vars_[static_cast<size_t>(name)]; }
  int gradient(int name) const { return gradients_[static_cast<size_t>(name)]; }
  bool has(size_t op) const { return at_[op] >= 0; }
  const GraphNode* node(size_t op) const { return has(op) ? &graph_->nodes[static_cast<size_t>(at_[op])] : nullptr; }
  const GraphNode* gradient_node(size_t op) const {
    return back_[op] >= 0 ? &graph_->nodes[static_cast<size_t>(back_[op])] : nullptr;
  }
  int operand(size_t op) const { return operands_[op]; }
  int result(size_t op) const { return results_[op]; }
  // The end of the chain: the result of its last op, or the operand of its first op if it was found from the last one.
  int end() const { return end_; }
  int end_gradient() const { return end_gradient_; }        // with_gradient: of the chain's first operand,
  int result_gradient() const { return result_gradient_; }  // and of its last result
  std::vector<int> parts() const { return ascending(at_); }
  std::vector<int> gradient_parts() const { return ascending(back_); }
  bool has_gradient() const { return result_gradient_ >= 0; }

 private:
  friend class Search;
  using Nodes = std::array<int, Pattern::kMostOps>;
  static std::vector<int> ascending(const Nodes& nodes);

  const Graph* graph_;
  const Uses* uses_;
  const PassContext* context_;
  Nodes at_, back_, operands_, results_;
  std::array<int, kMostNames> vars_, gradients_;
  int end_ = -1, end_gradient_ = -1, result_gradient_ = -1;
};

// Finds patterns in a graph that an edit is changing. Collects near misses for explain().
class Matcher {
 public:
  Matcher(const Graph& graph, const GraphEdit& edit, const PassContext& context)
      : graph_(graph), edit_(edit), context_(context) {}
  // The match whose first op is this node.
  std::optional<Match> find(const Pattern& pattern, int node) const;

 private:
  const Graph& graph_;
  const GraphEdit& edit_;
  const PassContext& context_;
};

// A pattern, and the function that replaces a match; false if it does not fit after all.
struct Fusion {
  const Pattern& pattern;
  std::function<bool(GraphEdit&, const Match&)> replace;
};
// Replaces the matches of each node, in order; returns their number.
int fuse(Graph& graph, const PassContext& context, std::initializer_list<Fusion> fusions);

}  // namespace anabranch
