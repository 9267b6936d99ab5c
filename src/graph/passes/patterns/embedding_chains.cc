#include "graph/passes/patterns/embedding_chains.h"

#include <algorithm>

#include "opdef/op_def.h"

namespace anabranch::embeddings {
namespace {

bool is_lookup_grad(const ir::Op& op) { return op.type == "lookup_table_grad" || op.type == "lookup_table_v2_grad"; }

// Ops that keep all elements in order, by attributes alone.
bool is_view(const GraphNode& node) { return find_op(node.op->type).is(kView) && node.ins.size() == 1; }
bool is_view_grad(const GraphNode& node) {
  const OpDef* forward = find_op(node.op->type).forward();
  return forward && forward->is(kView);
}

Pool pool_of(const ir::Op& op) { return fused::pool_of(op.attr<std::string>("pooltype")); }

int64_t columns_of(const Graph& graph, int var) {
  if (var < 0) return kUnknown;
  const Shape& s = graph.vars[var].desc.shape;
  return s.rank() == 2 ? s[1] : kUnknown;
}

// A lookup in a trained table with ids that do not change.
bool takes_part(const Graph& graph, const Uses& uses, const GraphNode& node) {
  const int table = input_var(node, "W"), ids = input_var(node, "Ids");
  if (table < 0 || ids < 0) return false;
  const Shape& s = graph.vars[table].desc.shape;
  return s.rank() == 2 && s[1] > 0 && uses.writers(ids).size() <= 1 && graph.vars[table].desc.persistable &&
         dtype_is_float(graph.vars[table].desc.dtype) && graph.vars[table].desc.dtype != DType::kFloat16;
}

// One node back from the gradient of a lookup's result: a reshape or a pooling without other readers.
void step_back(const Graph& graph, const Uses& uses, Source* s) {
  if (!uses.is_inner(s->grad) || uses.reader(s->grad) != s->lookup_grad) return;
  const int at = uses.writer(s->grad);
  const GraphNode& node = graph.nodes[at];
  if (node.op->type == "sequence_pool_grad") {
    const Pool pool = pool_of(*node.op);
    const int x = input_var(node, "X"), by = x < 0 ? -1 : uses.writer(x);
    if (pool == Pool::kNone || by < 0 || !is_lookup(graph, graph.nodes[by]) ||
        input_var(graph.nodes[by], "Ids") != s->ids) {
      return;
    }
    s->pool = pool;
  } else if (!is_view_grad(node)) {
    return;
  }
  s->grad = input_var(node, "Out@GRAD");
  s->nodes.push_back(at);
}

// From the gradient of rows to the row that they were multiplied with.
void step_into_product(const Graph& graph, const Uses& uses, Source* s) {
  if (!s->nodes.empty() || !uses.is_inner(s->grad) || uses.reader(s->grad) != s->lookup_grad) return;
  const auto product = find_row_product(graph, uses, uses.writer(s->grad));
  const bool same = product && product->ids == s->ids && product->table == input_var(graph.nodes[s->lookup_grad], "W");
  if (!same || output_var(graph.nodes[product->grad], "Y@GRAD") != s->grad) return;
  s->grad = product->x;
  s->per_row = static_cast<int>(product->count);
  s->product = product;
}

// The operand of a concat is the result of a lookup with these ids: it has a row for each of them.
bool is_made_by(const Graph& graph, const Uses& uses, int part, int ids) {
  int var = part;
  for (int steps = 0; steps < 2 && var >= 0; ++steps) {
    const int at = uses.writer(var);
    if (at < 0) return false;
    const GraphNode& node = graph.nodes[at];
    if (is_lookup(graph, node)) return input_var(node, "Ids") == ids;
    if (!is_view(node) && node.op->type != "sequence_pool") return false;
    var = input_var(node, "X");
  }
  return false;
}

// From a part of a concat's gradient to the whole of it.
void step_into_concat(const Graph& graph, const Uses& uses, int64_t width, Source* s) {
  const int reader = s->nodes.empty() ? s->lookup_grad : s->nodes.back();
  if (!uses.is_inner(s->grad) || uses.reader(s->grad) != reader) return;
  const int at = uses.writer(s->grad);
  if (graph.nodes[at].op->type != "concat_grad") return;
  const auto columns = find_columns(graph, graph.nodes[at]);
  const auto& outs = graph.nodes[at].outs;
  if (!columns || outs.size() != columns->parts.size()) return;
  const auto part = static_cast<int>(std::find(outs.begin(), outs.end(), s->grad) - outs.begin());
  if (!is_made_by(graph, uses, columns->parts[part], s->ids)) return;
  const int part_width = columns->widths[part];
  if (part_width % width != 0 || (s->pool != Pool::kNone && part_width != width)) return;
  s->per_row = static_cast<int>(part_width / width);
  s->column = columns->starts[part];
  s->columns = columns->starts.back() + columns->widths.back();
  s->grad = input_var(graph.nodes[at], "Out@GRAD");
  s->concat_grad = at;
  s->part = part;
}

bool add_source(const Graph& graph, const Uses& uses, int node, TableGrad* t) {
  const GraphNode& n = graph.nodes[node];
  if (!is_lookup_grad(*n.op) || !n.op->attr<bool>("is_sparse") || !takes_part(graph, uses, n)) return false;
  if (t->table >= 0 && input_var(n, "W") != t->table) return false;
  t->table = input_var(n, "W");
  Source s;
  s.lookup_grad = node;
  s.ids = input_var(n, "Ids");
  s.grad = input_var(n, "Out@GRAD");
  s.padding = n.op->attr<int64_t>("padding_idx");
  if (uses.writers(s.grad).size() > 1) return false;
  step_back(graph, uses, &s);
  step_into_concat(graph, uses, graph.vars[t->table].desc.shape[1], &s);
  step_into_product(graph, uses, &s);
  if (uses.writers(s.grad).size() > 1) return false;
  t->sources.push_back(std::move(s));
  return true;
}

}  // namespace

std::optional<Lookup> find_lookup(const Graph& graph, const Uses& uses, int part) {
  Lookup found;
  int var = part;
  bool viewed = false;
  const auto take = [&](int node) {
    found.nodes.push_back(node);
    for (int v : graph.writes(graph.nodes[node])) found.vars.push_back(v);
    var = input_var(graph.nodes[node], "X");
  };
  if (!uses.is_inner(var)) return {};
  int at = uses.writer(var);
  if (graph.nodes[at].op->type == "sequence_pool") {
    found.pool = pool_of(*graph.nodes[at].op);
    if (found.pool == Pool::kNone) return {};
    found.empty = graph.nodes[at].op->attr<float>("pad_value");
    take(at);
  } else if (is_view(graph.nodes[at])) {
    viewed = true;
    take(at);
  }
  if (!uses.is_inner(var)) return {};
  at = uses.writer(var);
  const GraphNode& lookup = graph.nodes[at];
  if (!is_lookup(graph, lookup) || !takes_part(graph, uses, lookup)) return {};
  found.table = input_var(lookup, "W");
  found.ids = input_var(lookup, "Ids");
  found.padding = lookup.op->attr<int64_t>("padding_idx");
  found.last_is_one = lookup.op->type == "lookup_table";
  take(at);
  if (!viewed && graph.vars[found.ids].desc.shape.rank() != 1 + found.last_is_one) return {};  // not a matrix
  const bool all_private = std::all_of(found.vars.begin(), found.vars.end(), [&](int v) { return uses.is_inner(v); });
  return all_private ? std::optional(found) : std::nullopt;
}

std::optional<Columns> find_columns(const Graph& graph, const GraphNode& concat) {
  const int axis = concat.op->attr<int32_t>("axis");
  if (!concat.op->input("AxisTensor").empty() || (axis != 1 && axis != -1)) return {};
  Columns c;
  int64_t begin = 0;
  for (const int var : input_vars(concat, "X")) {
    const int64_t width = columns_of(graph, var);
    if (width <= 0) return {};
    c.parts.push_back(var);
    c.widths.push_back(static_cast<int>(width));
    c.starts.push_back(static_cast<int>(begin));
    begin += width;
  }
  return c;
}

std::vector<TableGrad> find_table_grads(const Graph& graph, const Uses& uses) {
  std::vector<TableGrad> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    TableGrad t;
    t.node = static_cast<int>(i);
    if (node.op->type == "sum") {
      bool all = !node.ins.empty() && node.more_reads.empty();
      for (size_t k = 0; all && k < node.ins.size(); ++k) {
        const int v = node.ins[k];
        all = uses.is_inner(v) && uses.reader(v) == t.node && add_source(graph, uses, uses.writer(v), &t);
      }
      if (!all) continue;
    } else if (!is_lookup_grad(*node.op) || !add_source(graph, uses, t.node, &t)) {
      continue;
    }
    t.var = node.outs.empty() ? -1 : node.outs[0];
    if (t.var >= 0) found.push_back(std::move(t));
  }
  // A lookup whose gradient is summed is found twice: by itself, and in the sum.
  std::set<int> summed;
  for (const TableGrad& t : found) {
    for (const Source& s : t.sources) {
      if (s.lookup_grad != t.node) summed.insert(s.lookup_grad);
    }
  }
  std::erase_if(found, [&](const TableGrad& t) { return summed.count(t.node) != 0; });
  return found;
}

}  // namespace anabranch::embeddings
