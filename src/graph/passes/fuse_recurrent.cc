// A block that runs for each step and is an LSTM, a GRU or a simple cell becomes one op, and so does its gradient
// block: one product covers all steps, weights stay packed, gates take one pass. The computation is derived from the
// block's ops; the gradient block must be the one that append_backward creates. Other blocks stay unchanged, and
// explain() gives the reason.
#include <fmt/format.h>

#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/passes/patterns/block_gradient.h"
#include "graph/passes/patterns/cell_nodes.h"
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {
namespace {

using Names = std::vector<std::string>;

StepView view_of(const ir::Block& body, const ir::Op& op) {
  return {.ops = body.ops(),
          .inputs = op.input("inputs"),
          .memories = op.attr<Names>("ex_states"),
          .states = op.attr<Names>("states"),
          .outputs = op.output("outputs"),
          .is_outer = [&body](const std::string& name) { return body.find_var(name) == nullptr; }};
}

class RecurrentFuser {
 public:
  RecurrentFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context), edit_(graph) {}

  int run() {
    int fused = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (graph_.nodes[i].op->type != "recurrent") continue;
      const GraphNode node = graph_.nodes[i];
      const std::string why = fuse(i);
      const std::string what = why.empty() ? found_.cell.what : "left as it is: " + why;
      if (context_.notes && node.replica == 0) {
        context_.notes->push_back(fmt::format("{}: {}", node.op->describe(node.index, 0), what));
      }
      fused += why.empty();
    }
    edit_.commit();
    if (fused > 0) settle_dynamic(graph_);
    return fused;
  }

 private:
  struct Found {
    RecurrentCell cell;
    CellVars vars;
    std::vector<std::pair<int, int>> instead = {};  // variables that are no longer computed, and their replacements
  };

  std::string fuse(int at) {
    const GraphNode forward = graph_.nodes[at];
    const ir::Block& body = context_.program->block(block_of(forward));
    if (forward.op->attr<bool>("reverse")) return "it runs from the last step to the first";
    const StepView view = view_of(body, *forward.op);
    found_ = {.cell = match_cell(view), .vars = {}};
    if (!found_.cell.why.empty()) return found_.cell.why;
    int gradient = -1;
    const ir::Program& program = *context_.program;
    if (std::string why = find_block_gradient(graph_, edit_.uses, program, at, &gradient); !why.empty()) return why;
    if (std::string why = gather(forward); !why.empty()) return why;
    if (std::string why = choose(forward); !why.empty()) return why;
    if (gradient >= 0) {
      if (std::string why = check_gradient(forward, graph_.nodes[gradient]); !why.empty()) return why;
    }
    add_values(graph_, found_.cell, forward.replica, output_vars(forward, "outputs")[0], &found_.vars);
    edit_.replace({at}, cell_node(graph_, forward, found_.cell, found_.vars));
    if (gradient >= 0) put_gradient(gradient, graph_.nodes[gradient]);
    for (const auto& [from, to] : found_.instead) {
      for (const int reader : edit_.uses.readers(from)) read_instead(graph_, graph_.nodes[reader], from, to);
    }
    return "";
  }

  std::string gather(const GraphNode& forward) {
    const RecurrentCell& cell = found_.cell;
    CellVars& vars = found_.vars;
    vars.guarded = is_guarded(forward, *context_.program);
    const auto outer = [&](const char* slot, const std::string& name) {
      return var_named(input_vars(forward, slot), forward.op->input(slot), name);
    };
    const auto begun = input_vars(forward, "initial_states");
    if (begun.size() != cell.memories.size()) return "its memories have no initial states";
    vars.x = outer("inputs", cell.x);
    if (!cell.mask.empty()) vars.mask = outer("inputs", cell.mask);
    for (const size_t m : cell.memories) vars.first_states.push_back(begun[m]);
    for (const auto& name : cell.weights) vars.weights.push_back(outer("parameters", name));
    for (const auto& name : cell.biases) vars.biases.push_back(outer("parameters", name));
    return misfit(graph_, vars);
  }

  // One variable for each value of the cell. Another one with the same value is no longer computed: its readers read
  // the chosen one.
  std::string choose(const GraphNode& forward) {
    const auto shown = output_vars(forward, "outputs");
    auto& values = found_.vars.values;
    values.assign(found_.cell.values.size(), -1);
    for (size_t i = 0; i < shown.size(); ++i) {
      const int var = shown[i];
      int& chosen = values[found_.cell.shows[i]];
      if (var < 0) continue;
      if (chosen < 0) {
        chosen = var;
      } else if (replaceable(var)) {
        found_.instead.emplace_back(var, chosen);
      } else if (replaceable(chosen)) {
        for (auto& [from, to] : found_.instead) to = to == chosen ? var : to;
        found_.instead.emplace_back(chosen, var);
        chosen = var;
      } else {
        return "one state is an output twice, and both are needed after the run";
      }
    }
    for (const auto& [from, to] : found_.instead) {
      if (edit_.uses.writer(to) < 0) return "an output is written again";
    }
    return "";
  }

  bool replaceable(int var) const {
    if (!edit_.uses.is_inner(var)) return false;
    const auto& readers = edit_.uses.readers(var);
    return std::none_of(readers.begin(), readers.end(), [&](int r) {
      const auto& more = graph_.nodes[r].more_reads;
      return graph_.nodes[r].op->type != "recurrent_grad" && std::count(more.begin(), more.end(), var) != 0;
    });
  }

  // Gradients from outside: of outputs, and from the next step.
  std::string check_gradient(const GraphNode& forward, const GraphNode& node) const {
    const ir::Op &made = *forward.op, &back = *node.op;
    for (const char* slot : {"inputs", "initial_states", "parameters"}) {
      const auto mine = input_vars(forward, slot), its = input_vars(node, slot);
      if (!std::equal(mine.begin(), mine.end(), its.begin(), its.end())) return "its gradient reads other values";
    }
    for (const char* attr : {"ex_states", "states"}) {
      if (made.attr<Names>(attr) != back.attr<Names>(attr)) return "its gradient has other memories";
    }
    if (back.attr<bool>("reverse") || !node.more_writes.empty()) return "its gradient runs another way";
    BlockGradient::Seeds seeds;
    const auto &outputs = back.input("outputs"), &given = back.input("outputs@GRAD");
    if (outputs != made.output("outputs") || given.size() > outputs.size()) return "its gradient has other outputs";
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] != ir::kEmptyVar) seeds.emplace_back(outputs[i], ir::grad_name(outputs[i]));
    }
    for (const auto& state : made.attr<Names>("states")) seeds.emplace_back(state, ir::grad_name(state));
    const ir::Program& program = *context_.program;
    const BlockGradient check(program.block(block_of(forward)).ops(), program.block(block_of(node)).ops(), seeds);
    return check.why().empty() ? check_needed(node, made, check) : check.why();
  }

  std::string check_needed(const GraphNode& node, const ir::Op& made, const BlockGradient& check) const {
    const Names& memories = made.attr<Names>("ex_states");
    Names needed = memories;
    const auto need = [&](const char* slot, const Names& names) {
      const auto vars = output_vars(node, slot);
      for (size_t i = 0; i < vars.size() && i < names.size(); ++i) {
        if (vars[i] >= 0 && !(edit_.uses.is_inner(vars[i]) && edit_.uses.readers(vars[i]).empty())) {
          needed.push_back(names[i]);
        }
      }
    };
    need("inputs@GRAD", made.input("inputs"));
    need("parameters@GRAD", made.input("parameters"));
    const RecurrentCell& cell = found_.cell;
    for (const auto& name : needed) {
      if (!check.is_gradient(ir::grad_name(name), name))
        return fmt::format("the gradient of {} does not have the expected form", name);
      const auto among = [&](const Names& names) { return std::count(names.begin(), names.end(), name) != 0; };
      const bool known = name == cell.x || among(cell.weights) || among(cell.biases) || among(memories);
      if (!known) return fmt::format("{} has a gradient", name);
    }
    return "";
  }

  void put_gradient(int at, const GraphNode& node) {
    const RecurrentCell& cell = found_.cell;
    CellGradients gradients;
    gradients.given.resize(cell.values.size());
    const auto given = input_vars(node, "outputs@GRAD");
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] >= 0) gradients.given[cell.shows[i]].push_back(given[i]);
    }
    gradients.x = var_named(output_vars(node, "inputs@GRAD"), node.op->input("inputs"), cell.x);
    const auto begun = output_vars(node, "initial_states@GRAD");
    for (const size_t m : cell.memories) gradients.first_states.push_back(m < begun.size() ? begun[m] : -1);
    const auto parameter = [&](const std::string& name) {
      const int made = var_named(output_vars(node, "parameters@GRAD"), node.op->input("parameters"), name);
      return part_of_gradient(graph_, edit_, at, name, made);
    };
    for (const auto& name : cell.weights) gradients.weights.push_back(parameter(name));
    for (const auto& name : cell.biases) gradients.biases.push_back(parameter(name));
    edit_.replace({at}, cell_gradient_node(graph_, node, cell, found_.vars, gradients, role_vars_of(graph_, {at})));
  }

  Graph& graph_;
  const PassContext& context_;
  GraphEdit edit_;
  Found found_;
};

int fuse_recurrent(Graph& graph, const PassContext& context) {
  return context.program ? RecurrentFuser(graph, context).run() : 0;
}

}  // namespace

const Pass kFuseRecurrent = {
    .name = "fuse_recurrent",
    .what = "fuses a loop over time steps whose block is an LSTM, a GRU or a simple cell, and its gradient",
    .tolerance = kCellTolerance,
    .needs_flag = "FLAGS_fuse_recurrent",
    .on_devices = true,
    .skip = skip_cells,
    .run = fuse_recurrent};

}  // namespace anabranch
