// Steps of an LSTM, a GRU or a simple cell that follow each other in block 0 become the op of fuse_recurrent, and so do
// their gradients, which must be those of append_backward. Inputs of single steps are stacked first, unless they come
// from one tensor, and outputs are unstacked, unless they are stacked anyway.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "graph/on_device.h"
#include "graph/passes/passes.h"
#include "graph/passes/patterns/chain_backward.h"
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {
namespace {

// The required number of these positions, after one node and before another; none if there are too few.
std::vector<int> places(const std::set<int>& nodes, int after, int before, size_t count) {
  std::vector<int> all;
  for (const int at : nodes) {
    if (at > after && at < before && all.size() < count) all.push_back(at);
  }
  return all.size() == count ? all : std::vector<int>();
}

// Fuses one chain in a graph.
class ChainFuser {
 public:
  ChainFuser(Graph& graph, const UnrolledChain& chain, int replica)
      : graph_(graph),
        edit_(graph),
        chain_(chain),
        cell_(chain.cell),
        replica_(replica),
        stacks_(graph, edit_.uses, replica, cell_.op) {}

  // Why it stays unchanged; empty if it has been fused.
  std::string run() {
    std::string why = fuse();
    if (why.empty()) {
      edit_.commit();
    } else {
      stacks_.forget();
    }
    return why;
  }

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }

  std::string fuse() {
    note_steps();
    const ChainGradient gradient = find_gradient(graph_, edit_.uses, chain_, replica_, nodes_);
    if (!gradient.why.empty()) return gradient.why;
    inside_ = nodes_;
    inside_.insert(gradient.nodes.begin(), gradient.nodes.end());
    if (std::string why = check_readers(); !why.empty()) return why;
    if (std::string why = plan_forward(); !why.empty()) return why;
    const std::vector<int> at = places(nodes_, after_, before_, forward_.size());
    if (at.empty()) return "what a step reads comes too late";
    if (!gradient.nodes.empty()) {
      ChainBackward back = plan_backward(graph_, edit_.uses, stacks_, chain_, gradient, states_, xs_, vars_);
      std::set<int> free = gradient.nodes;
      free.insert(back.gone.begin(), back.gone.end());
      const std::vector<int> back_at = places(free, back.after, back.before, back.nodes.size());
      if (back_at.empty()) return "what its gradient reads comes too late";
      put(free, back_at, std::move(back.nodes));
    }
    nodes_.insert(gone_.begin(), gone_.end());
    put(nodes_, at, std::move(forward_));
    return "";
  }

  void note_steps() {
    const auto vars_of = [&](const std::vector<std::string>& names) {
      std::vector<int> all;
      for (const auto& name : names) all.push_back(graph_.find(name, replica_));
      return all;
    };
    for (const UnrolledStep& step : chain_.steps) {
      nodes_.insert(step.nodes.begin(), step.nodes.end());
      xs_.push_back(graph_.find(step.x, replica_));
    }
    for (size_t s = 0; s < cell_.first_states.size(); ++s) {
      std::vector<int>& all = states_.emplace_back();
      for (const UnrolledStep& step : chain_.steps) all.push_back(graph_.find(step.after[s], replica_));
    }
    vars_.guarded = std::any_of(nodes_.begin(), nodes_.end(), [&](int at) { return is_guarded(*node(at).op); });
    vars_.weights = vars_of(cell_.weights);
    vars_.biases = vars_of(cell_.biases);
    vars_.first_states = vars_of(chain_.steps[0].before);
  }

  // Internal values of a step have no other readers.
  std::string check_readers() const {
    for (const int at : nodes_) {
      for (const int out : node(at).outs) {
        const bool is_state = std::any_of(states_.begin(), states_.end(), [&](const auto& all) {
          return std::find(all.begin(), all.end(), out) != all.end();
        });
        if (out < 0 || is_state || !is_read_outside(edit_.uses, out, inside_)) continue;
        return fmt::format("{} is read elsewhere", graph_.vars[out].name);
      }
    }
    return "";
  }

  std::string plan_forward() {
    const GraphNode like = node(*nodes_.begin());
    if (std::string why = check_arguments(); !why.empty()) return why;
    if (const int at = stacks_.writer("unstack", xs_); at >= 0) {
      vars_.x = node(at).ins[0];
      const bool alone =
          std::none_of(xs_.begin(), xs_.end(), [&](int x) { return is_read_outside(edit_.uses, x, inside_); });
      if (alone) gone_.insert(at);
    } else {
      vars_.x = stacks_.of_steps(xs_[0], "x", xs_.size());
      forward_.push_back(stacks_.stack(xs_, vars_.x, like));
    }
    if (std::string why = misfit(graph_, vars_); !why.empty()) return why;
    std::vector<GraphNode> after;
    before_ = static_cast<int>(graph_.nodes.size());
    for (const auto& state : states_) vars_.values.push_back(value_of(state, like, &after));
    add_values(graph_, cell_, replica_, vars_.values[0], &vars_);
    forward_.push_back(cell_node(graph_, like, cell_, vars_));
    std::move(after.begin(), after.end(), std::back_inserter(forward_));
    return "";
  }

  // They are computed before the steps end, and not written again before that.
  std::string check_arguments() {
    std::vector<int> all = xs_;
    for (const auto* some : {&vars_.first_states, &vars_.weights, &vars_.biases}) {
      all.insert(all.end(), some->begin(), some->end());
    }
    for (const int var : all) {
      if (!is_float(graph_, var)) return "an argument is not float32";
      for (const int w : edit_.uses.writers(var)) {
        if (w < *nodes_.rbegin()) after_ = std::max(after_, w);
      }
    }
    for (const int x : xs_) {
      if (graph_.vars[x].desc.shape.rank() != 2) return "a step of x is not a matrix";
    }
    return "";
  }

  // The variable of all steps of a state; and the unstacking node, if single steps are read.
  int value_of(const std::vector<int>& state, const GraphNode& like, std::vector<GraphNode>* after) {
    for (const int var : state) {
      for (const int reader : edit_.uses.readers(var)) {
        if (!inside_.count(reader)) before_ = std::min(before_, reader);
      }
    }
    std::set<int> inside = inside_;
    const int stacked = stacks_.reader("stack", state);
    if (stacked >= 0) {
      gone_.insert(stacked);
      inside.insert(stacked);
    }
    const int value = stacked >= 0 ? node(stacked).outs[0] : stacks_.of_steps(state[0], "all", state.size());
    if (std::any_of(state.begin(), state.end(), [&](int v) { return is_read_outside(edit_.uses, v, inside); })) {
      after->push_back(stacks_.unstack(value, state, like));
    }
    return value;
  }

  // The new nodes take the positions of removed ones.
  void put(const std::set<int>& gone, const std::vector<int>& at, std::vector<GraphNode> made) {
    for (const int one : gone) edit_.remove(one);
    for (size_t i = 0; i < made.size(); ++i) edit_.put(at[i], std::move(made[i]));
  }

  Graph& graph_;
  GraphEdit edit_;
  const UnrolledChain& chain_;
  const RecurrentCell& cell_;
  const int replica_;
  Stacks stacks_;
  std::set<int> nodes_, inside_;  // of the steps; and of their gradients
  std::set<int> gone_;            // nodes that stack or unstack values that are whole afterwards
  std::vector<int> xs_;
  std::vector<std::vector<int>> states_;
  CellVars vars_;
  std::vector<GraphNode> forward_;
  int after_ = -1, before_ = 0;
};

// Fuses one chain; false if there is none. told: of each chain, by its first op.
bool fuse_one(Graph& graph, int replica, std::map<std::string, std::string>* told) {
  const Uses uses(graph);
  for (const UnrolledChain& chain : find_unrolled(graph, uses, replica)) {
    const GraphNode& first = graph.nodes[static_cast<size_t>(chain.steps[0].nodes[0])];
    std::string& what = (*told)[fmt::format("{} from {}", counted(static_cast<int64_t>(chain.steps.size()), "step"),
                                            first.op->describe(first.index, 0))];
    const std::string why = ChainFuser(graph, chain, replica).run();
    what = why.empty() ? chain.cell.what : "left as they are: " + why;
    if (why.empty()) return true;  // the graph has changed
  }
  return false;
}

int fuse_unrolled(Graph& graph, const PassContext& context) {
  int fused = 0;
  for (int replica = 0; replica < graph.replicas; ++replica) {
    std::map<std::string, std::string> told;
    while (fuse_one(graph, replica, &told)) ++fused;
    for (const auto& [where, what] : told) {
      if (context.notes && replica == 0) context.notes->push_back(fmt::format("{}: {}", where, what));
    }
  }
  return fused;
}

}  // namespace

const Pass kFuseUnrolled = {
    .name = "fuse_unrolled",
    .what = "fuses the unrolled time steps of an LSTM, a GRU or a simple cell, and their gradients",
    .tolerance = kCellTolerance,
    .needs_flag = "FLAGS_fuse_recurrent",
    .on_devices = true,
    .skip = skip_cells,
    .run = fuse_unrolled};

}  // namespace anabranch
