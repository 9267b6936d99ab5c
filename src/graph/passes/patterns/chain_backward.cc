#include "graph/passes/patterns/chain_backward.h"

#include <algorithm>

namespace anabranch {
namespace {

using OfSteps = std::vector<std::vector<int>>;  // gradients of each step

class Planner {
 public:
  Planner(const Graph& graph, const Uses& uses, Stacks& stacks, const UnrolledChain& chain,
          const ChainGradient& gradient, const CellVars& vars)
      : graph_(graph),
        uses_(uses),
        stacks_(stacks),
        chain_(chain),
        gradient_(gradient),
        vars_(vars),
        like_(graph.nodes[static_cast<size_t>(*gradient.nodes.rbegin())]) {}

  ChainBackward run(const std::vector<std::vector<int>>& states, const std::vector<int>& xs) {
    const RecurrentCell& cell = chain_.cell;
    CellGradients gradients;
    gradients.given.resize(cell.values.size());
    for (size_t s = 0; s < states.size(); ++s) gradients.given[s] = given_to(states[s]);
    std::vector<GraphNode> after;
    gradients.x = of_x(xs, &after);
    for (const auto& name : chain_.steps[0].before) gradients.first_states.push_back(gradient_.of(name));
    for (const auto& name : cell.weights) gradients.weights.push_back(gradient_.of(name));
    for (const auto& name : cell.biases) gradients.biases.push_back(gradient_.of(name));
    const std::vector<int> parts(gradient_.nodes.begin(), gradient_.nodes.end());
    plan_.nodes.push_back(cell_gradient_node(graph_, like_, cell, vars_, gradients, role_vars_of(graph_, parts)));
    std::move(after.begin(), after.end(), std::back_inserter(plan_.nodes));
    plan_.before = static_cast<int>(graph_.nodes.size());
    for (const auto& [name, out] : gradient_.needed) stand_before_readers(out);
    for (const int at : plan_.gone) {
      for (const int out : node(at).outs) stand_before_readers(out);
    }
    return std::move(plan_);
  }

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }
  void stand_after_writers(int var) {
    for (const int w : uses_.writers(var)) plan_.after = std::max(plan_.after, w);
  }
  void stand_before_readers(int var) {
    if (var < 0) return;
    for (const int r : uses_.readers(var)) {
      if (!gradient_.nodes.count(r) && !plan_.gone.count(r)) plan_.before = std::min(plan_.before, r);
    }
  }

  // Gradients of all steps of a state: those that come stacked, and the others, which are stacked here.
  std::vector<int> given_to(const std::vector<int>& state) {
    OfSteps of_step(state.size());
    for (const auto& [of, name] : gradient_.seeds) {
      for (size_t t = 0; t < state.size(); ++t) {
        if (graph_.vars[state[t]].name == of) of_step[t].push_back(graph_.find(name, like_.replica));
      }
    }
    std::vector<int> all = whole(&of_step);
    const auto left = [&] {
      return std::any_of(of_step.begin(), of_step.end(), [](const auto& some) { return !some.empty(); });
    };
    while (left()) all.push_back(stacked(&of_step, state[0]));
    return all;
  }

  // One gradient per step, from a stack_grad without other readers.
  std::vector<int> whole(OfSteps* of_step) {
    for (const int first : of_step->front()) {
      const int at = uses_.writer(first);
      if (at < 0 || node(at).op->type != "stack_grad" || !takes_apart(node(at), *of_step)) continue;
      for (size_t t = 0; t < of_step->size(); ++t) std::erase((*of_step)[t], node(at).outs[t]);
      plan_.gone.insert(at);
      const int all = input_var(node(at), "Y@GRAD");
      stand_after_writers(all);
      return {all};
    }
    return {};
  }

  bool takes_apart(const GraphNode& one, const OfSteps& of_step) const {
    if (one.outs.size() != of_step.size() || !is_plain(one) || one.op->attr<int32_t>("axis") != 0) return false;
    for (size_t t = 0; t < of_step.size(); ++t) {
      if (std::count(of_step[t].begin(), of_step[t].end(), one.outs[t]) != 1) return false;
      if (is_read_outside(uses_, one.outs[t], gradient_.nodes)) return false;
    }
    return true;
  }

  int stacked(OfSteps* of_step, int state) {
    int zeros = -1;
    std::vector<int> parts;
    for (auto& some : *of_step) {
      if (!some.empty()) {
        stand_after_writers(some.back());
        parts.push_back(some.back());
        some.pop_back();
        continue;
      }
      if (zeros < 0) {
        zeros = stacks_.like(state, "zeros");
        plan_.nodes.push_back(
            NodeBuilder(graph_, "fill_zeros_like", like_).in("X", vars_.first_states[0]).out("Out", zeros).done());
      }
      parts.push_back(zeros);
    }
    const int all = stacks_.of_steps(state, "given", parts.size());
    plan_.nodes.push_back(stacks_.stack(parts, all, like_));
    return all;
  }

  int of_x(const std::vector<int>& xs, std::vector<GraphNode>* after) {
    std::vector<int> parts;
    for (const UnrolledStep& step : chain_.steps) parts.push_back(gradient_.of(step.x));
    const auto missing = static_cast<size_t>(std::count(parts.begin(), parts.end(), -1));
    if (missing == parts.size()) return -1;
    if (const int at = missing == 0 ? stacks_.reader("unstack_grad", parts) : -1; at >= 0) {
      if (std::none_of(parts.begin(), parts.end(), [&](int p) { return uses_.reader(p) != at; })) {
        plan_.gone.insert(at);
        return node(at).outs[0];
      }
    }
    const int all = stacks_.of_steps(xs[0], "gradient", parts.size());
    for (size_t t = 0; t < parts.size(); ++t) {
      if (parts[t] < 0) parts[t] = stacks_.like(xs[t], "unread");
    }
    after->push_back(stacks_.unstack(all, parts, like_));
    return all;
  }

  const Graph& graph_;
  const Uses& uses_;
  Stacks& stacks_;
  const UnrolledChain& chain_;
  const ChainGradient& gradient_;
  const CellVars& vars_;
  const GraphNode like_;
  ChainBackward plan_;
};

}  // namespace

ChainBackward plan_backward(const Graph& graph, const Uses& uses, Stacks& stacks, const UnrolledChain& chain,
                            const ChainGradient& gradient, const std::vector<std::vector<int>>& states,
                            const std::vector<int>& xs, const CellVars& vars) {
  return Planner(graph, uses, stacks, chain, gradient, vars).run(states, xs);
}

}  // namespace anabranch
