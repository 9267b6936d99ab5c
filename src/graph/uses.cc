#include "graph/uses.h"

#include <algorithm>

namespace anabranch {
namespace {

int sole(const std::vector<ir::Slot>& slots, const std::vector<int>& ids, const std::string& name) {
  size_t at = 0;
  for (const auto& s : slots) {
    if (s.name == name) return s.args.size() == 1 ? ids[at] : -1;
    at += s.args.size();
  }
  return -1;
}

void note(std::vector<int>& nodes, size_t i) {
  if (nodes.empty() || nodes.back() != static_cast<int>(i)) nodes.push_back(static_cast<int>(i));
}

bool meet(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int v) { return std::find(b.begin(), b.end(), v) != b.end(); });
}

}  // namespace

int input_var(const GraphNode& node, const std::string& slot) { return sole(node.op->inputs, node.ins, slot); }
int output_var(const GraphNode& node, const std::string& slot) { return sole(node.op->outputs, node.outs, slot); }

Uses::Uses(const Graph& graph) : readers_(graph.vars.size()), writers_(graph.vars.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (int v : graph.reads(graph.nodes[i])) note(readers_[v], i);
    for (int v : graph.writes(graph.nodes[i])) note(writers_[v], i);
  }
}

bool GraphEdit::is_private(int var) const {
  const GraphVar& v = graph_.vars[var];
  return !v.desc.persistable && !v.fed && !v.fetched && v.desc.kind == VarKind::kLoDTensor && uses.writer(var) >= 0 &&
         uses.reader(var) >= 0;
}

bool GraphEdit::may_gather(const std::vector<int>& parts) const {
  constexpr int kFar = 512;  // keeps the passes linear in the number of nodes
  if (parts.back() - parts.front() > kFar) return false;
  std::vector<int> reads, writes;  // of the parts that would move, from the last one up
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

void GraphEdit::replace(const std::vector<int>& parts, GraphNode node) {
  const GraphNode& first = graph_.nodes[parts[0]];
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

void GraphEdit::commit() {
  std::vector<GraphNode> kept;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (!gone_[i]) kept.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(kept);
}

}  // namespace anabranch
