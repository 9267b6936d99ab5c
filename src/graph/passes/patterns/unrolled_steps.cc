#include "graph/passes/patterns/unrolled_steps.h"

#include <algorithm>
#include <map>
#include <set>

namespace anabranch {
namespace {

constexpr size_t kMostNodes = 64;  // of a step
constexpr size_t kMostSteps = 512;

bool is_forward(const GraphNode& node) { return (node.role() & 3) == 0 && is_plain(node); }

class StepFinder {
 public:
  StepFinder(const Graph& graph, const Uses& uses, int replica) : graph_(graph), uses_(uses), replica_(replica) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const GraphNode& node = graph.nodes[i];
      if (node.replica != replica || !is_forward(node)) continue;
      for (const auto& name : node.op->output_args()) made_by_[name] = static_cast<int>(i);
      const std::string weight = weight_of(*node.op);
      if (!weight.empty()) groups_[weight].push_back(static_cast<int>(i));
    }
  }

  std::vector<UnrolledChain> run() {
    for (const auto& [weight, nodes] : groups_) {
      if (nodes.size() < 2 || nodes.size() > kMostSteps) continue;
      for (size_t part = 0; part < 2; ++part) {
        if (group(nodes, part)) break;
      }
    }
    return std::move(found_);
  }

 private:
  static std::string weight_of(const ir::Op& op) {
    if (op.type == "mul" || op.type == "matmul") return sole(op.input("Y"));
    return op.type == "gru_unit" ? sole(op.input("Weight")) : "";
  }

  const ir::Op* maker(const std::string& name) const {
    const auto it = made_by_.find(name);
    return it == made_by_.end() ? nullptr : graph_.nodes[static_cast<size_t>(it->second)].op.get();
  }

  // Candidates of the state before a product: an operand of a concat, or the product's only operand.
  std::string state_at(int node, size_t part) const {
    const ir::Op& op = *graph_.nodes[static_cast<size_t>(node)].op;
    if (op.type == "gru_unit") return part == 0 ? sole(op.input("HiddenPrev")) : "";
    const std::string x = sole(op.input("X"));
    const ir::Op* joined = maker(x);
    if (!joined || joined->type != "concat") return part == 0 ? x : "";
    return joined->input("X").size() == 2 ? joined->input("X")[part] : "";
  }

  bool group(const std::vector<int>& nodes, size_t part) {
    bool any = false;
    for (size_t t = 0; t < nodes.size();) {
      UnrolledChain chain;
      const size_t begin = t;
      for (; t < nodes.size(); ++t) {
        const std::string next = t + 1 < nodes.size() ? state_at(nodes[t + 1], part) : "";
        if (next.empty() || !step(nodes[t], state_at(nodes[t], part), next, &chain)) break;
      }
      if (t > begin) any = last_step(nodes[t], state_at(nodes[t], part), &chain) || any;
      if (chain.steps.size() > 1) {
        for (const UnrolledStep& s : chain.steps) taken_.insert(s.nodes.begin(), s.nodes.end());
        found_.push_back(std::move(chain));
      }
      t = std::max(t, begin) + 1;
    }
    return any;
  }

  // The state after the last step is among the results of its product.
  bool last_step(int node, const std::string& state, UnrolledChain* chain) {
    std::vector<int> front = {node};
    for (size_t i = 0; i < front.size() && front.size() < kMostNodes; ++i) {
      for (const int var : graph_.nodes[static_cast<size_t>(front[i])].outs) {
        if (var < 0) continue;
        for (const int reader : uses_.readers(var)) {
          if (std::count(front.begin(), front.end(), reader) ||
              !is_forward(graph_.nodes[static_cast<size_t>(reader)])) {
            continue;
          }
          front.push_back(reader);
        }
      }
    }
    for (const int at : front) {
      for (const char* slot : {"Out", "H", "Hidden"}) {
        const std::string name = sole(graph_.nodes[static_cast<size_t>(at)].op->output(slot));
        if (!name.empty() && step(node, state, name, chain)) return true;
      }
    }
    return false;
  }

  // Adds the step from `state` to `next`, if it is one and fits the earlier ones.
  bool step(int node, const std::string& state, const std::string& next, UnrolledChain* chain) {
    const std::string x = x_of(node, state);
    if (x.empty() || state.empty() || x == next || !maker(next)) return false;
    const std::string cell = next_cell(next);
    if (cell.empty()) return matches({{}, x, {state}, {next}}, chain);
    if (!chain->steps.empty()) {
      return matches({{}, x, {state, chain->steps.back().after.back()}, {next, cell}}, chain);
    }
    for (const std::string& first : cells_before(cell)) {
      if (matches({{}, x, {state, first}, {next, cell}}, chain)) return true;
    }
    return false;
  }

  std::string x_of(int node, const std::string& state) const {
    const ir::Op& op = *graph_.nodes[static_cast<size_t>(node)].op;
    if (op.type == "gru_unit") return factor(sole(op.input("Input")), state, 4);
    const ir::Op* joined = maker(sole(op.input("X")));
    if (joined && joined->type == "concat" && joined->input("X").size() == 2) {
      const auto& parts = joined->input("X");
      return parts[0] == state ? parts[1] : parts[0];
    }
    for (const int reader : uses_.readers(graph_.nodes[static_cast<size_t>(node)].outs[0])) {
      const GraphNode& sum = graph_.nodes[static_cast<size_t>(reader)];
      if (!is_forward(sum)) continue;
      if (const std::string x = factor(sole(sum.op->output("Out")), state, 4); !x.empty()) return x;
    }
    return "";
  }

  // The left factor of a product in a sum that is not `state`.
  std::string factor(const std::string& sum, const std::string& state, int depth) const {
    const ir::Op* op = maker(sum);
    if (!op || depth == 0) return "";
    if (op->type == "mul" || op->type == "matmul") {
      const std::string x = sole(op->input("X"));
      return x == state ? "" : x;
    }
    if (op->type != "sum" && op->type != "elementwise_add") return "";
    for (const char* slot : {"X", "Y"}) {
      for (const auto& name : op->input(slot)) {
        if (const std::string x = factor(name, state, depth - 1); !x.empty()) return x;
      }
    }
    return "";
  }

  // The cell whose tanh is a factor of the state.
  std::string next_cell(const std::string& state) const {
    const ir::Op* op = maker(state);
    if (op->type == "lstm_unit") return sole(op->output("C"));
    if (op->type != "elementwise_mul") return "";
    for (const char* slot : {"X", "Y"}) {
      const ir::Op* shown = maker(sole(op->input(slot)));
      if (shown && shown->type == "tanh") return sole(shown->input("X"));
    }
    return "";
  }

  std::vector<std::string> cells_before(const std::string& cell) const {
    std::vector<std::string> found;
    const ir::Op* op = maker(cell);
    if (!op) return found;
    if (op->type == "lstm_unit") return {sole(op->input("C_prev"))};
    for (const char* slot : {"X", "Y"}) {
      for (const auto& name : op->input(slot)) {
        const ir::Op* share = maker(name);
        if (!share || share->type != "elementwise_mul") continue;
        for (const char* factor : {"X", "Y"}) found.push_back(sole(share->input(factor)));
      }
    }
    return found;
  }

  bool matches(UnrolledStep step, UnrolledChain* chain) const {
    if (!gather(&step)) return false;
    const std::set<std::string> own = {step.x, step.before.front(), step.before.back()};
    StepView view{.ops = {},
                  .inputs = {step.x},
                  .memories = step.before,
                  .states = step.after,
                  .outputs = {},
                  .is_outer = [&own](const std::string& name) { return own.count(name) == 0; }};
    for (const int node : step.nodes) view.ops.push_back(graph_.nodes[static_cast<size_t>(node)].op);
    RecurrentCell cell = match_cell(view);
    if (!cell.why.empty()) return false;
    std::vector<std::string> before, after;
    for (const size_t m : cell.memories) {
      before.push_back(step.before[m]);
      after.push_back(step.after[m]);
    }
    step.before = std::move(before);
    step.after = std::move(after);
    if (chain->steps.empty()) {
      chain->cell = std::move(cell);
    } else if (cell.op != chain->cell.op || cell.weights != chain->cell.weights || cell.biases != chain->cell.biases ||
               cell.attrs != chain->cell.attrs || step.before != chain->steps.back().after) {
      return false;
    }
    chain->steps.push_back(std::move(step));
    return true;
  }

  // The nodes between a step's inputs and outputs.
  bool gather(UnrolledStep* step) const {
    std::vector<std::string> open = step->after;
    std::set<std::string> seen(step->before.begin(), step->before.end());
    seen.insert(step->x);
    std::set<int> nodes;
    while (!open.empty()) {
      const std::string name = open.back();
      open.pop_back();
      const auto it = made_by_.find(name);
      if (!seen.insert(name).second || it == made_by_.end()) continue;
      const GraphNode& node = graph_.nodes[static_cast<size_t>(it->second)];
      if (taken_.count(it->second) || !known(node)) return false;
      if (node.op->input_args().empty()) continue;  // such as a constant bias: each step reads the same one
      nodes.insert(it->second);
      if (nodes.size() > kMostNodes) return false;
      for (const auto& in : node.op->input_args()) open.push_back(in);
    }
    step->nodes.assign(nodes.begin(), nodes.end());
    return !nodes.empty();
  }

  // Its names refer to one value each.
  bool known(const GraphNode& node) const {
    const auto one = [&](int var) {
      return var < 0 || (graph_.vars[var].version == 0 && graph_.find(graph_.vars[var].name, replica_) == var);
    };
    return std::all_of(node.ins.begin(), node.ins.end(), one) && std::all_of(node.outs.begin(), node.outs.end(), one);
  }

  const Graph& graph_;
  const Uses& uses_;
  const int replica_;
  std::map<std::string, int> made_by_;
  std::map<std::string, std::vector<int>> groups_;
  std::set<int> taken_;
  std::vector<UnrolledChain> found_;
};

}  // namespace

std::vector<UnrolledChain> find_unrolled(const Graph& graph, const Uses& uses, int replica) {
  return StepFinder(graph, uses, replica).run();
}

}  // namespace anabranch
