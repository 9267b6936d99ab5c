#include "graph/passes/patterns/chain_gradient.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

using Names = std::vector<std::string>;

std::string base_of(const std::string& gradient) {
  const auto at = gradient.find("@GRAD");
  return at == std::string::npos ? "" : gradient.substr(0, at);
}

class GradientFinder {
 public:
  GradientFinder(const Graph& graph, const Uses& uses, const UnrolledChain& chain, int replica,
                 const std::set<int>& nodes)
      : graph_(graph), uses_(uses), chain_(chain), replica_(replica), nodes_(nodes) {}

  ChainGradient run() {
    find_nodes();
    if (found_.nodes.empty()) return {};
    BlockGradient::Ops forward, backward;
    for (const int at : nodes_) forward.push_back(node(at).op);
    for (const int at : found_.nodes) backward.push_back(node(at).op);
    found_.why = find_seeds(backward);
    if (!found_.why.empty()) return found_;
    const BlockGradient check(forward, backward, found_.seeds);
    found_.why = check.why().empty() ? find_needed(check) : check.why();
    return found_;
  }

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }

  // Nodes that read gradients of the steps' results, and the sums of their partial gradients.
  void find_nodes() {
    std::set<std::string> made;
    for (const int at : nodes_) {
      for (const auto& name : node(at).op->output_args()) made.insert(name);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& one = graph_.nodes[i];
      if (one.replica != replica_ || (one.role() & ir::role::kBackward) == 0 || !is_plain(one)) continue;
      const auto reads = one.op->input_args();
      const bool takes = std::any_of(reads.begin(), reads.end(), [&](const auto& n) { return made.count(base_of(n)); });
      const bool adds = one.op->type == "sum" &&
                        std::all_of(reads.begin(), reads.end(), [&](const auto& n) { return given_.count(n) != 0; });
      if (!takes && !adds) continue;
      found_.nodes.insert(static_cast<int>(i));
      for (const auto& name : one.op->output_args()) given_.insert(name);
    }
  }

  // Gradients of states from outside.
  std::string find_seeds(const BlockGradient::Ops& backward) {
    std::set<std::string> states;
    for (const UnrolledStep& step : chain_.steps) states.insert(step.after.begin(), step.after.end());
    for (const auto& op : backward) {
      for (const auto& name : op->input_args()) {
        const std::string of = base_of(name);
        if (of.empty() || given_.count(name)) continue;
        if (!states.count(of)) return fmt::format("the gradient of {} comes from elsewhere", of);
        const std::pair seed(of, name);
        if (!std::count(found_.seeds.begin(), found_.seeds.end(), seed)) found_.seeds.push_back(seed);
      }
    }
    return "";
  }

  // Gradients with readers after those nodes.
  std::string find_needed(const BlockGradient& check) {
    const RecurrentCell& cell = chain_.cell;
    Names known = cell.weights;
    known.insert(known.end(), cell.biases.begin(), cell.biases.end());
    known.insert(known.end(), chain_.steps[0].before.begin(), chain_.steps[0].before.end());
    for (const UnrolledStep& step : chain_.steps) known.push_back(step.x);
    for (const int at : found_.nodes) {
      for (const int out : node(at).outs) {
        if (out < 0 || !is_read_outside(uses_, out, found_.nodes)) continue;
        const std::string& name = graph_.vars[out].name;
        const std::string of = base_of(name);
        if (!std::count(known.begin(), known.end(), of)) return fmt::format("{} is read elsewhere", name);
        if (!check.is_gradient(name, of)) return fmt::format("the gradient of {} does not have the expected form", of);
        if (!found_.needed.emplace(of, out).second) return fmt::format("{} has two gradients", of);
      }
    }
    return "";
  }

  const Graph& graph_;
  const Uses& uses_;
  const UnrolledChain& chain_;
  const int replica_;
  const std::set<int>& nodes_;
  std::set<std::string> given_;  // outputs of those nodes
  ChainGradient found_;
};

}  // namespace

ChainGradient find_gradient(const Graph& graph, const Uses& uses, const UnrolledChain& chain, int replica,
                            const std::set<int>& nodes) {
  return GradientFinder(graph, uses, chain, replica, nodes).run();
}

bool is_read_outside(const Uses& uses, int var, const std::set<int>& inside) {
  if (!uses.is_inner(var)) return true;
  const auto& readers = uses.readers(var);
  return std::any_of(readers.begin(), readers.end(), [&](int r) { return inside.count(r) == 0; });
}

}  // namespace anabranch
