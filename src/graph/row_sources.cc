#include "graph/row_sources.h"

#include <numeric>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool unknown_rows(const GraphVar& v) {
  return v.desc.kind == VarKind::kLoDTensor && v.desc.shape.rank() > 0 && v.desc.shape[0] == kUnknown;
}

}  // namespace

RowSources::RowSources(const Graph& graph) : graph_(graph), source_(graph.vars.size()) {
  std::iota(source_.begin(), source_.end(), 0);
  std::vector<int> writers(graph.vars.size(), 0);
  for (const GraphNode& node : graph.nodes) {
    for (int v : graph.writes(node)) ++writers[v];
  }
  for (const GraphNode& node : graph.nodes) {
    for (int v : node.outs) {
      if (v < 0 || writers[v] != 1 || !unknown_rows(graph.vars[v])) continue;
      const int forward = of_gradient(v);
      source_[v] = forward >= 0 ? forward : of_inputs(node, v);
    }
  }
}

// A gradient has the shape of what it is the gradient of.
int RowSources::of_gradient(int var) const {
  const GraphVar& v = graph_.vars[var];
  const size_t at = v.name.find("@GRAD");
  const int forward = at == std::string::npos ? -1 : graph_.find(v.name.substr(0, at), v.replica);
  return forward >= 0 && graph_.vars[forward].desc.shape == v.desc.shape ? source_[forward] : -1;
}

int RowSources::of_inputs(const GraphNode& node, int out) const {
  if (!find_op(node.op->type).is(kRowWise)) return out;
  int source = -1;
  for (int v : node.ins) {
    if (v < 0 || !unknown_rows(graph_.vars[v])) continue;
    if (source >= 0 && source != source_[v]) return out;
    source = source_[v];
  }
  return source < 0 ? out : source;
}

bool RowSources::same_shape(int a, int b) const {
  const Shape &s = graph_.vars[a].desc.shape, &t = graph_.vars[b].desc.shape;
  if (!(s == t) || s.rank() == 0 || !s.slice(1, s.rank()).known()) return false;
  return s[0] != kUnknown || source_[a] == source_[b];
}

}  // namespace anabranch
