#include "graph/body_graphs.h"

#include <fmt/format.h>

#include <utility>

#include "base/counted.h"
#include "opdef/check_op.h"

namespace anabranch {
BodyGraphs::BodyGraphs(const ir::Program& program, const BuildStrategy& build, std::string disable, int replicas)
    : program_(program), build_(build), disabled_(std::move(disable)), replicas_(replicas), outer_names_(program) {
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& op : program.block(b).ops()) {
      note_mentions(*op, b, {});
      for (int sub : op->sub_blocks()) {
        inner_[b].push_back(sub);
        if (program.block(sub).forward_block > 0) inner_[program.block(sub).forward_block].push_back(sub);
      }
    }
  }
}

// Ops that run a block refer to its variables by the names of their arguments, by those of the arguments' gradients,
// and by attributes.
void BodyGraphs::note_mentions(const ir::Op& op, int block, const std::set<std::string>& only_shapes) {
  const auto mention = [&](const std::string& name) {
    Mentions& by = mentioned_[name];
    if (by.blocks.insert(block).second) mentioned_in_[block].push_back(&by);
    if (only_shapes.count(name) == 0) by.elements.insert(block);
  };
  const bool runs_block = !op.sub_blocks().empty();
  for (const auto& args : {op.input_args(), op.output_args()}) {
    for (const auto& name : args) {
      mention(name);
      if (runs_block) mention(ir::grad_name(name));
    }
  }
  for (const auto& [attr, value] : op.attrs) {
    const auto* names = runs_block ? std::get_if<std::vector<std::string>>(&value) : nullptr;
    for (size_t i = 0; names && i < names->size(); ++i) {
      mention((*names)[i]);
      mention(ir::grad_name((*names)[i]));
    }
  }
}

// The ops that passes leave in a block determine what outer blocks and its forward block must keep for it.
void BodyGraphs::note_mentions_again(int block, const Graph& graph) {
  for (Mentions* by : std::exchange(mentioned_in_[block], {})) {
    ++revised_;
    by->blocks.erase(block);
    by->elements.erase(block);
  }
  for (const auto& op : program_.block(block).ops()) {
    if (!op->sub_blocks().empty()) note_mentions(*op, block, {});
  }
  for (const GraphNode& node : graph.nodes) {
    std::set<std::string> only_shapes;
    for (int v : node.only_shapes) only_shapes.insert(graph.vars[v].name);
    note_mentions(*node.op, block, only_shapes);
    for (const GraphNode::Part& part : node.parts) note_mentions(*part.op, block, only_shapes);
  }
}

bool BodyGraphs::is_private(int block, const std::string& name) const {
  const auto it = mentioned_.find(name);
  return it != mentioned_.end() && it->second.blocks == std::set<int>{block};
}

bool BodyGraphs::keeps_elements(int block, const std::string& name) const {
  const auto it = mentioned_.find(name);
  return it == mentioned_.end() || it->second.elements != std::set<int>{block};
}

int BodyGraphs::var(const ir::Block& block, const std::string& name, Graph& graph) const {
  if (is_discarded(name)) {  // each a separate variable
    const int known = graph.find(name, 0);
    return known < 0 ? graph.var(name, 0, {}) : graph.add_version(known);
  }
  if (const int known = graph.find(name, 0); known >= 0) return known;
  const auto desc = block.find_var_recursive(name);
  AB_CHECK(desc != nullptr, NotFound, "variable {} is in no block that can be seen", name);
  const int made = graph.var(name, 0, *desc);
  graph.vars[static_cast<size_t>(made)].desc.persistable |= block.find_var(name) == nullptr;
  graph.vars[static_cast<size_t>(made)].fetched = !is_private(block.idx(), name);
  return made;
}

void BodyGraphs::add_node(const ir::Block& block, int index, Graph& graph) {
  GraphNode node;
  node.op = checked_copy(*block.ops()[static_cast<size_t>(index)]);
  node.index = index;
  const auto add = [&](const std::vector<std::string>& names, std::vector<int>* ids) {
    for (const auto& name : names) ids->push_back(name == ir::kEmptyVar ? -1 : var(block, name, graph));
  };
  for (const auto& slot : node.op->inputs) add(slot.args, &node.ins);
  for (const auto& slot : node.op->outputs) add(slot.args, &node.outs);
  for (int sub : node.op->sub_blocks()) {
    const OuterNames& outer = outer_names_.of(sub);
    add({outer.reads.begin(), outer.reads.end()}, &node.more_reads);
    add({outer.writes.begin(), outer.writes.end()}, &node.more_writes);
  }
  if (find_op(node.op->type).has(kOrdered)) node.tokens.push_back(GraphNode::kOrderToken);
  graph.nodes.push_back(std::move(node));
}

namespace {

// A variable that is written twice, or read before it is written, passes from one iteration to the next.
void keep_carried(Graph& graph) {
  std::vector<char> written(graph.vars.size(), 0);
  for (const GraphNode& node : graph.nodes) {
    for (int v : graph.reads(node))
      graph.vars[static_cast<size_t>(v)].desc.persistable |= !written[static_cast<size_t>(v)];
    const bool keeps = find_op(node.op->type).has(kKeepsOutputs) || !node.more_writes.empty();
    for (int v : graph.writes(node)) {
      GraphVar& var = graph.vars[static_cast<size_t>(v)];
      var.desc.persistable |= keeps || written[static_cast<size_t>(v)];
      var.produced = true;
      written[static_cast<size_t>(v)] = 1;
    }
  }
}

}  // namespace

Graph BodyGraphs::make(const ir::Block& block) {
  Graph graph;
  for (size_t i = 0; i < block.ops().size(); ++i) {
    try {
      add_node(block, static_cast<int>(i), graph);
    } catch (Error& e) {
      throw e.with_op(block.ops()[i]->describe(static_cast<int>(i), block.idx()));
    }
  }
  keep_carried(graph);
  return graph;
}

const Graph& BodyGraphs::of(int block) {
  if (const auto it = made_.find(block); it != made_.end()) return it->second;
  for (int first : inner_[block]) {
    if (begun_.insert(first).second) of(first);
  }
  Graph graph = make(program_.block(block));
  const size_t ops = graph.nodes.size();
  const auto reports = run_passes(graph, {build_, disabled_, &program_, block, replicas_});
  note_mentions_again(block, graph);
  note_run(block, reports, ops, graph.nodes.size());
  return made_.emplace(block, std::move(graph)).first->second;
}

void BodyGraphs::note_run(int block, const std::vector<PassReport>& reports, size_t ops, size_t nodes) {
  std::string text = fmt::format("  block {:<10} {}, {}", block, counted(static_cast<int64_t>(ops), "op"),
                                 counted(static_cast<int64_t>(nodes), "node"));
  for (const PassReport& r : reports) {
    trusts_shapes_ |= r.trusts_shapes;
    if (r.changes > 0) text += fmt::format("; {}: {}", r.name, counted(r.changes, "change"));
  }
  lines_[block] = std::move(text);
}

std::string BodyGraphs::explain() const {
  std::string text;
  for (const auto& [block, line] : lines_) text += line + "\n";
  return text;
}

}  // namespace anabranch
