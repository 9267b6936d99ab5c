#include "graph/edit.h"

#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

std::span<const int> slot_vars(const std::vector<ir::Slot>& slots, const std::vector<int>& ids, std::string_view name) {
  size_t at = 0;
  for (const auto& s : slots) {
    if (s.name == name) return std::span(ids).subspan(at, s.args.size());
    at += s.args.size();
  }
  return {};
}

int only_of(std::span<const int> vars) { return vars.size() == 1 ? vars[0] : -1; }

bool holds_rows(const ir::Var& desc) { return desc.kind == VarKind::kLoDTensor || desc.kind == VarKind::kSelectedRows; }

template <class Vars> bool meet(const Vars& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int v) { return std::find(b.begin(), b.end(), v) != b.end(); });
}

}  // namespace

std::span<const int> input_vars(const GraphNode& node, std::string_view slot) {
  return slot_vars(node.op->inputs, node.ins, slot);
}
std::span<const int> output_vars(const GraphNode& node, std::string_view slot) {
  return slot_vars(node.op->outputs, node.outs, slot);
}
int input_var(const GraphNode& node, std::string_view slot) { return only_of(input_vars(node, slot)); }
int output_var(const GraphNode& node, std::string_view slot) { return only_of(output_vars(node, slot)); }

int var_named(std::span<const int> vars, const std::vector<std::string>& names, const std::string& name) {
  for (size_t i = 0; i < names.size() && i < vars.size(); ++i) {
    if (names[i] == name) return vars[i];
  }
  return -1;
}

bool is_float(const Graph& graph, int var) {
  return var >= 0 && graph.vars[var].desc.dtype == DType::kFloat32 && graph.vars[var].desc.kind == VarKind::kLoDTensor;
}

std::vector<std::string> role_vars_of(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (int i : nodes) {
    for (const auto& [param, grad] : graph.nodes[i].op->role_vars()) names.insert(names.end(), {param, grad});
  }
  return names;
}

void read_instead(Graph& graph, GraphNode& node, int out, int x) {
  auto op = std::make_shared<ir::Op>(*node.op);
  size_t at = 0;
  for (ir::Slot& slot : op->inputs) {
    for (std::string& arg : slot.args) {
      if (node.ins[at] == out) {
        node.ins[at] = x;
        arg = graph.vars[x].name;
      }
      ++at;
    }
  }
  std::replace(node.only_shapes.begin(), node.only_shapes.end(), out, x);
  node.op = op;
}

template <class VarsOf> Uses::Nodes Uses::list(const Graph& graph, VarsOf vars_of) {
  const size_t vars = graph.vars.size();
  Nodes made{std::vector<int>(vars), std::vector<int>(vars), {}};
  int all = 0;
  for (const GraphNode& node : graph.nodes) {
    for (int v : vars_of(node)) ++made.starts[v], ++all;
  }
  made.nodes.resize(all);
  for (size_t v = vars, end = all; v-- > 0;) made.starts[v] = made.ends[v] = static_cast<int>(end -= made.starts[v]);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int v : vars_of(graph.nodes[i])) {
      int& end = made.ends[v];
      if (end == made.starts[v] || made.nodes[end - 1] != static_cast<int>(i)) made.nodes[end++] = static_cast<int>(i);
    }
  }
  return made;
}

Uses::Uses(const Graph& graph)
    : graph_(graph),
      readers_(list(graph, [&](const GraphNode& node) { return graph.reads(node); })),
      writers_(list(graph, [&](const GraphNode& node) { return graph.writes(node); })) {}

bool Uses::is_inner(int var) const {
  const GraphVar& v = graph_.vars[var];
  return !v.desc.persistable && !v.fed && !v.fetched && writer(var) >= 0;
}

bool Uses::is_private(int var) const {
  return is_inner(var) && reader(var) >= 0 && graph_.vars[var].desc.kind == VarKind::kLoDTensor;
}

bool may_read_instead(const Graph& graph, const Uses& uses, int i, int x, int out) {
  const GraphVar &from = graph.vars[x], &to = graph.vars[out];
  if (x == out || to.desc.persistable || to.fed || to.fetched || from.replica != to.replica) return false;
  if (from.desc.kind != to.desc.kind || !holds_rows(to.desc) || uses.writer(out) != i) return false;
  const auto& writers = uses.writers(x);
  if (!writers.empty() && writers.back() >= i) return false;
  return std::none_of(uses.readers(out).begin(), uses.readers(out).end(),
                      [&](int r) { return r < i || find_op(graph.nodes[r].op->type).has(kRunsBlock); });
}

void settle_dynamic(Graph& graph) {
  const Uses uses(graph);
  // One node computes the value; others change it in place, as sums over replicas do.
  const auto made_once = [&](int v) {
    const auto& writers = uses.writers(v);
    return !writers.empty() && std::all_of(writers.begin() + 1, writers.end(), [&](int at) {
      const auto reads = graph.reads(graph.nodes[at]);
      return std::find(reads.begin(), reads.end(), v) != reads.end();
    });
  };
  for (const GraphNode& node : graph.nodes) {
    const OpDef& def = find_op(node.op->type);
    const auto reads = graph.reads(node);
    const bool dynamic = def.is_dynamic(*node.op) || def.has(kKeepsOutputs) || def.has(kRunsBlock) ||
                         std::any_of(reads.begin(), reads.end(), [&](int v) { return graph.vars[v].dynamic; });
    if (dynamic) continue;
    for (const int v : graph.writes(node)) {
      const bool changes = std::find(reads.begin(), reads.end(), v) != reads.end();
      if (!changes && made_once(v) && !graph.vars[v].desc.persistable) graph.vars[v].dynamic = false;
    }
  }
}

NodeBuilder::NodeBuilder(const Graph& graph, std::string type, ir::OpRef like, int index, int replica)
    : graph_(graph), like_(std::move(like)) {
  op_->type = std::move(type);
  op_->made_at = like_->made_at;
  node_.index = index;
  node_.replica = replica;
  copy({"op_role"});
}

NodeBuilder& NodeBuilder::copy(std::initializer_list<const char*> attrs) {
  for (const char* name : attrs) {
    if (like_->has_attr(name)) op_->attrs[name] = like_->attrs.at(name);
  }
  return *this;
}

NodeBuilder& NodeBuilder::copy_all() {
  op_->attrs = like_->attrs;
  return *this;
}

NodeBuilder& NodeBuilder::attr(const std::string& name, Attr value) {
  op_->attrs[name] = std::move(value);
  return *this;
}

NodeBuilder& NodeBuilder::in(std::string slot, std::vector<int> vars) {
  ins_.emplace_back(std::move(slot), std::move(vars));
  return *this;
}

NodeBuilder& NodeBuilder::out(std::string slot, std::vector<int> vars) {
  outs_.emplace_back(std::move(slot), std::move(vars));
  return *this;
}

GraphNode NodeBuilder::done() {
  const OpDef& def = find_op(op_->type);
  const auto lay = [&](const std::vector<SlotDef>& declared, const Slots& given, std::vector<ir::Slot>* slots,
                       std::vector<int>* ids) {
    for (const auto& [name, vars] : given) {
      const bool known =
          std::any_of(declared.begin(), declared.end(), [&](const SlotDef& d) { return d.name == name; });
      AB_CHECK(known || vars.empty(), Internal, "{} has no slot {}", def.type(), name);
    }
    for (const SlotDef& d : declared) {
      ir::Slot& slot = slots->emplace_back();
      slot.name = d.name;
      for (const auto& [name, vars] : given) {
        if (name != d.name) continue;
        for (int v : vars) slot.args.push_back(v < 0 ? std::string(ir::kEmptyVar) : graph_.vars[v].name);
        ids->insert(ids->end(), vars.begin(), vars.end());
      }
    }
  };
  lay(def.inputs(), ins_, &op_->inputs, &node_.ins);
  lay(def.outputs(), outs_, &op_->outputs, &node_.outs);
  for (const AttrDef& attr : def.attrs()) {
    if (!attr.required) op_->attrs.try_emplace(attr.name, attr.value);
  }
  node_.op = std::move(op_);
  return std::move(node_);
}

bool GraphEdit::may_gather(const std::vector<int>& parts) const {
  constexpr int kFar = 512;  // keeps the passes linear in the number of nodes
  if (parts.back() - parts.front() > kFar) return false;
  std::vector<int> reads, writes;  // of the parts that would move, last part first
  for (int i = parts.back(); i > parts.front(); --i) {
    if (gone_[i] && !std::count(parts.begin(), parts.end(), i)) continue;
    const auto r = graph_.reads(graph_.nodes[i]), w = graph_.writes(graph_.nodes[i]);
    if (std::count(parts.begin(), parts.end(), i)) {
      reads.insert(reads.end(), r.begin(), r.end());
      writes.insert(writes.end(), w.begin(), w.end());
    } else if (meet(w, reads) || meet(w, writes) || meet(r, writes)) {
      return false;
    }
  }
  return true;
}

// Variables that every part reads only for their shape.
std::vector<int> GraphEdit::shapes_read_by(const std::vector<int>& parts) const {
  std::vector<int> found;
  for (int i : parts) {
    for (int v : graph_.nodes[i].only_shapes) {
      const bool by_all = std::all_of(parts.begin(), parts.end(), [&](int p) {
        const GraphNode& part = graph_.nodes[p];
        const auto& shapes = part.only_shapes;
        return std::count(part.ins.begin(), part.ins.end(), v) == 0 || std::count(shapes.begin(), shapes.end(), v) != 0;
      });
      if (by_all && std::count(found.begin(), found.end(), v) == 0) found.push_back(v);
    }
  }
  return found;
}

void GraphEdit::replace(const std::vector<int>& parts, GraphNode node) {
  const GraphNode& first = graph_.nodes[parts[0]];
  node.only_shapes = shapes_read_by(parts);
  node.index = first.index;
  node.replica = first.replica;
  for (int i : parts) {
    const GraphNode& part = graph_.nodes[i];
    node.tokens.insert(node.tokens.end(), part.tokens.begin(), part.tokens.end());
    node.parts.push_back({part.index, part.op});
    gone_[i] = 1;
  }
  gone_[parts[0]] = 0;
  graph_.nodes[parts[0]] = std::move(node);
}

void GraphEdit::put(int at, GraphNode node) {
  gone_[at] = 0;
  graph_.nodes[at] = std::move(node);
}

void GraphEdit::commit() {
  std::vector<GraphNode> kept;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!gone_[i]) kept.push_back(std::move(graph_.nodes[i]));
    const auto [first, last] = after_.equal_range(static_cast<int>(i));
    for (auto node = first; node != last; ++node) kept.push_back(std::move(node->second));
  }
  graph_.nodes = std::move(kept);
}

}  // namespace anabranch
