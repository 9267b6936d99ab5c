#include "graph/passes/patterns/stacks.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {

int Stacks::add(int like, const char* what, size_t steps) {
  ir::Var desc = graph_.vars[like].desc;
  desc.name = fmt::format("{}@{}_{}@{}", graph_.vars[like].name, what, graph_.vars.size(), suffix_);
  desc.persistable = false;
  if (steps > 0) {
    std::vector<int64_t> extents = {static_cast<int64_t>(steps)};
    for (int i = 0; i < desc.shape.rank(); ++i) extents.push_back(desc.shape[i]);
    desc.shape = Shape(extents);
  }
  const bool dynamic = graph_.vars[like].dynamic;
  const int made = graph_.var(desc.name, replica_, desc);
  graph_.vars[made].produced = true;
  graph_.vars[made].dynamic = dynamic;
  return made;
}

GraphNode Stacks::stack(const std::vector<int>& parts, int to, const GraphNode& like) const {
  return NodeBuilder(graph_, "stack", like).attr("axis", int32_t{0}).in("X", parts).out("Y", to).done();
}

GraphNode Stacks::unstack(int from, const std::vector<int>& parts, const GraphNode& like) const {
  return NodeBuilder(graph_, "unstack", like)
      .attr("axis", int32_t{0})
      .attr("num", static_cast<int32_t>(parts.size()))
      .in("X", from)
      .out("Y", parts)
      .done();
}

int Stacks::whole(const char* type, const std::vector<int>& parts, bool makes_them) const {
  for (const int at : makes_them ? uses_.writers(parts[0]) : uses_.readers(parts[0])) {
    const GraphNode& node = graph_.nodes[static_cast<size_t>(at)];
    if (node.op->type != type || node.op->attr<int32_t>("axis") != 0 || !is_plain(node)) continue;
    const auto& vars = makes_them ? node.outs : node.ins;
    if (std::equal(vars.begin(), vars.end(), parts.begin(), parts.end())) return at;
  }
  return -1;
}

}  // namespace anabranch
