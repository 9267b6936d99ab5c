// A loop over the steps of sequences, as DynamicRNN creates it, whose block is an LSTM, a GRU or a simple cell becomes
// one op, and so does its gradient: no arrays, one product for all steps, packed weights. The computation is derived
// from the block's ops; other loops stay unchanged, and explain() gives the reason.
#include <fmt/format.h>

#include <algorithm>

#include "graph/passes/passes.h"
#include "graph/passes/patterns/recurrent_cell.h"
#include "graph/passes/patterns/sequence_loop.h"

namespace anabranch {
namespace {

class SequenceFuser {
 public:
  explicit SequenceFuser(Graph& graph) : graph_(graph), edit_(graph) {}

  // Changes the graph if the loop at this position can be one op; otherwise returns the reason. what: the cell.
  std::string run(const ir::Program& program, int at, const char** what) {
    SequenceLoop found = find_sequence_loop(graph_, edit_.uses, program, at);
    if (!found.why.empty()) return found.why;
    const GraphNode forward = node(at);
    found.vars.guarded = is_guarded(forward, program);
    add_values(graph_, found.cell, forward.replica, found.shown, &found.vars);
    for (const auto& [name, value] : found.states) found.named[name] = found.vars.values[value];
    put_rows(found.tail, program.block(block_of(forward)), forward, at, &found);
    for (const auto& [fill, element] : found.constants) read_instead(graph_, graph_.nodes[fill], element, found.vars.x);
    if (found.gradient >= 0) put_gradient(program.block(block_of(node(found.gradient))), &found);
    edit_.replace({at}, cell_node(graph_, forward, found.cell, found.vars));
    for (const int gone : found.gone) edit_.remove(gone);
    remove_unread(found.unread);
    edit_.commit();
    *what = found.cell.what;
    return "";
  }

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }

  // The ops of a block applied to all rows, after a node.
  void put_rows(const std::vector<ir::OpRef>& ops, const ir::Block& block, const GraphNode& like, int after,
                SequenceLoop* found) {
    for (const auto& op : ops) {
      edit_.add_after(after, node_of_all_rows(graph_, *op, like, [&](const std::string& name) {
                        int& var = found->named.try_emplace(name, -1).first->second;
                        if (var < 0) var = all_rows(block, name, like.replica, found->shown);
                        return var;
                      }));
    }
  }

  int all_rows(const ir::Block& block, const std::string& name, int replica, int like) {
    ir::Var desc;
    if (const ir::VarRef var = block.find_var_recursive(name)) desc = *var;
    desc.name = fmt::format("{}@rows{}", name, block.idx());  // blocks may share names
    desc.kind = VarKind::kLoDTensor;
    desc.dtype = DType::kFloat32;
    const int var = graph_.var(desc.name, replica, desc);
    graph_.vars[static_cast<size_t>(var)].produced = true;
    graph_.vars[static_cast<size_t>(var)].dynamic = graph_.vars[static_cast<size_t>(like)].dynamic;
    return var;
  }

  void put_gradient(const ir::Block& block, SequenceLoop* found) {
    const int at = found->gradient;
    const GraphNode back = node(at);
    for (const auto& [gradient, of] : found->parameters) {
      int& made = found->named.at(gradient);
      made = part_of_gradient(graph_, edit_, at, of, made);
    }
    put_rows(found->tail_gradient, block, back, found->after, found);
    for (const auto& [gradient, value] : found->given) {
      found->gradients.given[value].push_back(found->named.at(gradient));
    }
    const auto parts = [&](const std::vector<std::string>& names, std::vector<int>* made) {
      for (size_t i = 0; i < names.size(); ++i) {
        (*made)[i] = part_of_gradient(graph_, edit_, at, names[i], (*made)[i]);
      }
    };
    parts(found->cell.weights, &found->gradients.weights);
    parts(found->cell.biases, &found->gradients.biases);
    edit_.replace(
        {at}, cell_gradient_node(graph_, back, found->cell, found->vars, found->gradients, role_vars_of(graph_, {at})));
  }

  // Nodes whose readers are gone; the last ones first, because they read the others' results.
  void remove_unread(const std::set<int>& nodes) {
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const auto& outs = node(*it).outs;
      const bool read = std::any_of(outs.begin(), outs.end(), [&](int var) { return is_read(var); });
      if (!read) edit_.remove(*it);
    }
  }

  bool is_read(int var) const {
    if (!edit_.uses.is_inner(var)) return true;
    const auto& readers = edit_.uses.readers(var);
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      const auto reads = graph_.reads(node(reader));
      return !edit_.gone(reader) && std::count(reads.begin(), reads.end(), var) != 0;
    });
  }

  Graph& graph_;
  GraphEdit edit_;
};

// Loops by their ops, because positions change.
std::vector<std::pair<ir::OpRef, int>> find_loops(const Graph& graph) {
  std::vector<std::pair<ir::OpRef, int>> found;
  const Uses uses(graph);
  for (const GraphNode& node : graph.nodes) {
    if (steps_through_sequences(graph, uses, node)) found.emplace_back(node.op, node.replica);
  }
  return found;
}

int fuse_sequence_steps(Graph& graph, const PassContext& context) {
  if (!context.program) return 0;
  int fused = 0;
  for (const auto& [op, replica] : find_loops(graph)) {
    const auto at =
        std::find_if(graph.nodes.begin(), graph.nodes.end(),
                     [&, &op = op, replica = replica](const auto& n) { return n.op == op && n.replica == replica; });
    const std::string where = at->describe();
    const auto place = static_cast<int>(at - graph.nodes.begin());
    const char* what = "";
    const std::string why = SequenceFuser(graph).run(*context.program, place, &what);
    fused += why.empty();
    if (!context.notes || replica != 0) continue;
    context.notes->push_back(fmt::format("{}: {}", where, why.empty() ? what : "left as it is: " + why));
  }
  if (fused > 0) settle_dynamic(graph);
  return fused;
}

}  // namespace

const Pass kFuseSequenceSteps = {
    .name = "fuse_sequence_steps",
    .what = "fuses a loop over the steps of sequences that is an LSTM, a GRU or a simple cell, and its gradient",
    .tolerance = kCellTolerance,
    .needs_flag = "FLAGS_fuse_recurrent",
    .on_devices = true,
    .skip = skip_cells,
    .run = fuse_sequence_steps};

}  // namespace anabranch
