// Removes ops whose results are neither read nor fetched nor kept, for instance an accuracy that a step does not fetch.
// A run without any result is left as it is.
#include <algorithm>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool has_effect(const GraphNode& node) {
  const OpDef& def = find_op(node.op->type);
  return node.outs.empty() || !node.tokens.empty() || def.has(kOrdered) || def.has(kRunsBlock);
}

bool is_needed(const GraphVar& v) { return v.fetched || v.fed || v.desc.persistable; }

int remove_dead(Graph& graph, const PassContext&) {
  GraphEdit edit(graph);
  const int count = static_cast<int>(graph.nodes.size());
  std::vector<char> live(count, 0);
  std::vector<int> found;
  const auto visit = [&](int i) {
    if (!live[i]) found.push_back(i);
    live[i] = 1;
  };
  bool any_needed = false;
  for (int i = 0; i < count; ++i) {
    const auto writes = graph.writes(graph.nodes[i]);
    const bool needed = std::any_of(writes.begin(), writes.end(), [&](int v) { return is_needed(graph.vars[v]); });
    if (needed || has_effect(graph.nodes[i])) visit(i);
    any_needed |= needed;
  }
  if (!any_needed) return 0;
  while (!found.empty()) {
    const int i = found.back();
    found.pop_back();
    for (int v : graph.reads(graph.nodes[i])) {
      for (int w : edit.uses.writers(v)) visit(w);
    }
  }
  int removed = 0;
  for (int i = 0; i < count; ++i) {
    if (live[i]) continue;
    edit.remove(i);
    ++removed;
  }
  edit.commit();
  return removed;
}

}  // namespace

const Pass kRemoveDead = {.name = "remove_dead",
                          .what = "removes ops with unused results",
                          .tolerance = "bit-equal",
                          .keeps_ops = true,
                          .in_bodies = true,
                          .on_devices = true,
                          .run = remove_dead};

}  // namespace anabranch
