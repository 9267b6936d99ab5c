#include "graph/passes/row_sources.h"

#include <algorithm>
#include <numeric>

#include "graph/edit.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool unknown_rows(const GraphVar& v) {
  return v.desc.kind == VarKind::kLoDTensor && v.desc.shape.rank() > 0 && v.desc.shape[0] == kUnknown;
}

bool stays_first(const GraphNode& node, const char* attr, int first) {
  if (!node.op->has_attr(attr)) return false;
  const auto& extents = node.op->attr<std::vector<int32_t>>(attr);
  return !extents.empty() && extents[0] == first;
}

// Whether Out has a row for each row of the inputs with an unknown number of rows.
bool keeps_rows(const Graph& graph, const GraphNode& node) {
  const std::string& type = node.op->type;
  if (type == "transpose" || type == "transpose2") return stays_first(node, "axis", 0);
  if (type == "reshape" || type == "reshape2") {  // 0: the input's extent
    return stays_first(node, "shape", 0) && input_vars(node, "Shape").empty() &&
           input_vars(node, "ShapeTensor").empty();
  }
  if (type != "matmul") return find_op(type).is(kRowWise);
  return std::all_of(node.ins.begin(), node.ins.end(), [&](int v) {  // of batches of matrices
    return v >= 0 && unknown_rows(graph.vars[v]) && graph.vars[v].desc.shape.rank() > 2;
  });
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
    for (int v : node.outs) {
      if (v < 0) continue;
      const auto [known, added] = of_name_.try_emplace({graph.vars[v].name, graph.vars[v].replica}, source_[v]);
      if (!added && known->second != source_[v]) known->second = -1;
    }
  }
}

// A gradient has the shape of its variable, in any dtype: if the dtypes differ, there are versions of one name.
int RowSources::of_gradient(int var) const {
  const GraphVar& v = graph_.vars[var];
  const size_t at = v.name.find("@GRAD");
  if (at == std::string::npos) return -1;
  const std::string name = v.name.substr(0, at);
  const int forward = graph_.find(name, v.replica);
  if (forward < 0 || !(graph_.vars[forward].desc.shape == v.desc.shape)) return -1;
  const auto written = of_name_.find({name, v.replica});
  return written == of_name_.end() ? source_[forward] : written->second;
}

int RowSources::of_inputs(const GraphNode& node, int out) const {
  if (!keeps_rows(graph_, node)) return out;
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

bool RowSources::alike(int a, int b) const {
  const ir::Var &v = graph_.vars[a].desc, &w = graph_.vars[b].desc;
  return v.kind == VarKind::kLoDTensor && w.kind == v.kind && v.dtype == w.dtype && v.lod_level == 0 &&
         w.lod_level == 0 && same_shape(a, b);
}

}  // namespace anabranch
