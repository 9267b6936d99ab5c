#include "graph/passes/patterns/cell_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/on_device.h"
#include "opdef/sums_of_iterations.h"

namespace anabranch {
namespace {

NodeBuilder node_of(const char* type, const Graph& graph, const GraphNode& like, const RecurrentCell& cell,
                    const CellVars& vars) {
  NodeBuilder node(graph, type, like);
  if (vars.guarded) node.attr("op_device", std::string("cpu"));
  for (const auto& [name, value] : cell.attrs) node.attr(name, value);
  node.in("X", vars.x).in("Mask", vars.mask);
  for (size_t s = 0; s < cell.first_states.size(); ++s) node.in(cell.first_states[s], vars.first_states[s]);
  node.in("Weights", vars.weights).in("Biases", vars.biases);
  return node;
}

bool is_row(const Shape& shape) {
  for (int i = 0; i + 1 < shape.rank(); ++i) {
    if (shape[i] != 1) return false;
  }
  return shape.rank() > 0;
}

}  // namespace

bool is_guarded(const GraphNode& node, const ir::Program& program) {
  const auto& ops = program.block(block_of(node)).ops();
  return is_guarded(*node.op) || std::any_of(ops.begin(), ops.end(), [](const auto& op) { return is_guarded(*op); });
}

std::string misfit(const Graph& graph, const CellVars& vars) {
  std::vector<int> all = {vars.x};
  if (vars.mask >= 0) all.push_back(vars.mask);
  for (const auto* some : {&vars.first_states, &vars.weights, &vars.biases}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  for (const int var : all) {
    if (!is_float(graph, var)) return "an argument is not float32";
  }
  for (const int bias : vars.biases) {
    if (!is_row(graph.vars[bias].desc.shape)) return fmt::format("{} is not a row", graph.vars[bias].name);
  }
  return graph.vars[vars.x].desc.shape.rank() == (vars.sequences ? 2 : 3) ? "" : "a step of x is not a matrix";
}

void add_values(Graph& graph, const RecurrentCell& cell, int replica, int like, CellVars* vars) {
  const std::string base = graph.vars[like].name;
  const bool dynamic = graph.vars[like].dynamic;
  const auto add = [&](const char* what) {
    ir::Var desc;
    desc.name = fmt::format("{}@{}@{}", base, what, cell.op);
    desc.kind = VarKind::kLoDTensor;
    desc.dtype = DType::kFloat32;
    const int var = graph.var(desc.name, replica, desc);
    graph.vars[var].produced = true;
    graph.vars[var].dynamic = dynamic;
    return var;
  };
  vars->values.resize(cell.values.size(), -1);
  for (size_t v = 0; v < cell.values.size(); ++v) {
    if (vars->values[v] < 0) vars->values[v] = add(cell.values[v]);
  }
  for (const char* slot : cell.for_gradient) vars->for_gradient.push_back(add(slot));
}

GraphNode cell_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars) {
  NodeBuilder node = node_of(cell.op, graph, like, cell, vars);
  for (size_t v = 0; v < cell.values.size(); ++v) node.out(cell.values[v], vars.values[v]);
  for (size_t v = 0; v < cell.for_gradient.size(); ++v) node.out(cell.for_gradient[v], vars.for_gradient[v]);
  return node.done();
}

GraphNode cell_gradient_node(const Graph& graph, const GraphNode& like, const RecurrentCell& cell, const CellVars& vars,
                             const CellGradients& gradients, std::vector<std::string> role_vars) {
  const auto of = [](const char* slot) { return std::string(slot) + "@GRAD"; };
  NodeBuilder node = node_of((std::string(cell.op) + "_grad").c_str(), graph, like, cell, vars);
  for (size_t v = 0; v < cell.values.size(); ++v) {
    node.in(cell.values[v], vars.values[v]).in(of(cell.values[v]), gradients.given[v]);
  }
  for (size_t v = 0; v < cell.for_gradient.size(); ++v) node.in(cell.for_gradient[v], vars.for_gradient[v]);
  node.attr("op_role_var", std::move(role_vars)).out("X@GRAD", gradients.x);
  for (size_t s = 0; s < cell.first_states.size(); ++s) {
    node.out(of(cell.first_states[s]), gradients.first_states[s]);
  }
  node.out("Weights@GRAD", gradients.weights).out("Biases@GRAD", gradients.biases);
  return node.done();
}

std::string find_block_gradient(const Graph& graph, const Uses& uses, const ir::Program& program, int at,
                                int* gradient) {
  const GraphNode& forward = graph.nodes[at];
  const std::string type = forward.op->type + "_grad";
  *gradient = -1;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (node.op->type != type || node.replica != forward.replica) continue;
    if (program.block(block_of(node)).forward_block != block_of(forward)) continue;
    if (*gradient >= 0 || static_cast<int>(i) < at) return "it has several gradients";
    *gradient = static_cast<int>(i);
  }
  int scopes = output_var(forward, "step_scopes");
  if (scopes < 0) scopes = output_var(forward, "StepScopes");
  if (scopes < 0) return "";
  const auto& readers = uses.readers(scopes);
  const bool alone = std::all_of(readers.begin(), readers.end(), [&](int reader) { return reader == *gradient; });
  return alone && uses.is_inner(scopes) ? "" : "its saved values have other readers";
}

int part_of_gradient(Graph& graph, GraphEdit& edit, int at, const std::string& of, int made) {
  const GraphNode node = graph.nodes[at];
  const auto sums = input_vars(node, kSumSlot);
  int before = -1;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (node.op->attr<std::vector<std::string>>(kSumsOf).at(i) == of) before = sums[i];
  }
  if (made < 0 || before < 0) return made;
  ir::Var desc = graph.vars[made].desc;
  desc.name = fmt::format("{}@part", graph.vars[made].name);
  const int part = graph.var(desc.name, node.replica, desc);
  graph.vars[part].produced = true;
  NodeBuilder sum(graph, "sum", node);
  for (const auto& [parameter, gradient] : node.op->role_vars()) {
    if (gradient == graph.vars[made].name) sum.attr("op_role_var", std::vector<std::string>{parameter, gradient});
  }
  edit.add_after(at, sum.in("X", {before, part}).out("Out", made).done());
  return part;
}

}  // namespace anabranch
