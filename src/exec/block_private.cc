// Values of a sub-block that use the memory shared by all iterations (block_memory.h): tensors of which code outside of
// the block sees at most the shape, that no iteration passes on, and whose producers set their shapes. Outputs that a
// kernel allocates itself, or may leave unset, keep their own memory.
#include <map>
#include <set>

#include "exec/block_code.h"

namespace anabranch {

// By variable: the root of those that it shares memory with.
std::map<int, int> BlockCode::private_vars(const Graph& graph) const {
  std::map<int, int> found;
  for (size_t i = 0; i < graph.vars.size(); ++i) {
    const GraphVar& v = graph.vars[i];
    const auto own = vars_.find(v.name);
    const bool seen = v.fetched && set_.options_.bodies->keeps_elements(block_.idx(), v.name);
    const bool fits = !v.desc.persistable && !seen && v.produced && v.desc.kind == VarKind::kLoDTensor;
    if (fits && own != vars_.end()) found[own->second] = graph.buffer(static_cast<int>(i));
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool may_miss = find_op(graph.nodes[i].op->type).has(kMaybeUnset);
    if (!nodes_[i].dynamic && !may_miss) continue;
    for (size_t t = may_miss ? 0 : nodes_[i].reads; t < nodes_[i].touches.size(); ++t) {
      const Arg& arg = places_[static_cast<size_t>(nodes_[i].touches[t])];
      if (arg.block == this) found.erase(arg.var);
    }
  }
  return found;
}

void BlockCode::find_private(const Graph& graph) {
  const auto vars = private_vars(graph);
  std::vector<BlockMemory::Use> uses;
  std::map<int, size_t> use_of;  // by root
  std::set<int> known;           // positions
  for (size_t i = 0, group = 0; i < nodes_.size(); ++i) {
    if (i == group + nodes_[group].group || nodes_[i].group > 1) group = i;  // nodes of a group run concurrently
    for (const int p : nodes_[i].touches) {
      const Arg& arg = places_[static_cast<size_t>(p)];
      const auto root = arg.block == this ? vars.find(arg.var) : vars.end();
      if (root == vars.end()) continue;
      const auto [at, fresh] = use_of.try_emplace(root->second, uses.size());
      if (fresh) uses.push_back({{}, static_cast<int>(group), 0});
      BlockMemory::Use& use = uses[at->second];
      if (known.insert(p).second) use.places.push_back(static_cast<size_t>(p));
      use.last = static_cast<int>(group);
    }
  }
  memory_.set_uses(std::move(uses));
}

}  // namespace anabranch
