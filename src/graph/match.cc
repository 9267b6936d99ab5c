#include "graph/match.h"

#include <algorithm>

#include "graph/match_search.h"
#include "opdef/op_def.h"

namespace anabranch {

OpPattern& OpPattern::add(std::vector<Slot>* slots, const char* slot, int name) {
  slots->push_back({slot, ir::grad_name(slot), name});
  return *this;
}

OpPattern& OpPattern::inner(const char* slot, int name) {
  add(&outs, slot, name);
  outs.back().inner = true;
  return *this;
}

OpPattern& OpPattern::either(const char* slot, const char* or_slot, int other_name) {
  add(&operands, slot, -1);
  if (or_slot != std::string_view(slot)) add(&operands, or_slot, -1);
  other = other_name;
  return *this;
}

OpPattern& OpPattern::makes(const char* slot) {
  result = {slot, ir::grad_name(slot), -1};
  return *this;
}

OpPattern& OpPattern::when(Condition condition, const char* why) {
  conditions.emplace_back(condition, why);
  return *this;
}

OpPattern& OpPattern::may_end_gradient() {
  ends_gradient = true;
  return *this;
}

OpPattern& OpPattern::may_pass_gradient() {
  passes_gradient = true;
  return *this;
}

bool OpPattern::is(const GraphNode& node, bool gradient) const {
  std::string_view named = node.op->type;
  if (kind) {
    const OpDef* def = &find_op(node.op->type);
    if (gradient) def = def->forward();
    return def && kind(*def);
  }
  if (gradient) {
    if (!named.ends_with("_grad")) return false;
    named.remove_suffix(5);
  }
  return std::find(types.begin(), types.end(), named) != types.end();
}

OpPattern op(std::initializer_list<const char*> types) {
  OpPattern made;
  made.types.assign(types.begin(), types.end());
  return made;
}

OpPattern op(bool (*kind)(const OpDef&)) {
  OpPattern made;
  made.kind = kind;
  return made;
}

Pattern& Pattern::add(OpPattern op, bool optional) {
  AB_CHECK(ops_.size() < kMostOps, Internal, "a pattern has at most {} ops", kMostOps);
  op.optional = optional;
  ops_.push_back(std::move(op));
  return *this;
}

Pattern& Pattern::each(Values fits, const char* why) {
  values_ = fits;
  no_value_ = why;
  return *this;
}

Pattern& Pattern::or_alone() {
  alone_ = true;
  return *this;
}

Pattern& Pattern::with_gradient() {
  with_gradient_ = true;
  return *this;
}

Pattern& Pattern::in_place() {
  in_place_ = true;
  return *this;
}

Pattern Pattern::gradient() const {
  Pattern gradient = *this;
  gradient.down_ = !down_;
  gradient.of_gradient_ = true;
  return gradient;
}

Pattern down(OpPattern first) {
  Pattern pattern;
  pattern.then(std::move(first));
  return pattern;
}

Pattern up(OpPattern last) {
  Pattern pattern = down(std::move(last));
  pattern.down_ = false;
  return pattern;
}

std::vector<int> Match::ascending(const Nodes& nodes) {
  std::vector<int> sorted;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(sorted), [](int node) { return node >= 0; });
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::optional<Match> Matcher::find(const Pattern& pattern, int node) const {
  if (!pattern.ops_[0].is(graph_.nodes[static_cast<size_t>(node)], pattern.of_gradient_)) return std::nullopt;
  Search search(graph_, edit_, context_, pattern);
  std::optional<Match> found = search.run(node);
  if (context_.near_misses) search.report(found ? &*found : nullptr);
  return found;
}

int fuse(Graph& graph, const PassContext& context, std::initializer_list<Fusion> fusions) {
  GraphEdit edit(graph);
  const Matcher matcher(graph, edit, context);
  int fused = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    for (const Fusion& fusion : fusions) {
      if (edit.gone(i)) break;
      const auto match = matcher.find(fusion.pattern, i);
      fused += match && fusion.replace(edit, *match);
    }
  }
  edit.commit();
  return fused;
}

}  // namespace anabranch
