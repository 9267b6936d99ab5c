#include "graph/passes/patterns/row_products.h"

#include <algorithm>

#include "opdef/fused_ops.h"

namespace anabranch::embeddings {
namespace {

bool is_of_rows(const Graph& graph, const GraphNode& node) {
  const int x = input_var(node, "X"), y = input_var(node, "Y");
  if (!is_plain(node) || node.on_device() || !is_float(graph, x) || !is_float(graph, y)) return false;
  const ir::Op& op = *node.op;
  if (op.attr<bool>("transpose_X") || !op.attr<bool>("transpose_Y") || op.attr<float>("alpha") != 1.0f) return false;
  const Shape &one = graph.vars[x].desc.shape, &rows = graph.vars[y].desc.shape;
  return one.rank() == 3 && rows.rank() == 3 && one[1] == 1 && one[0] == rows[0] && one[2] == rows[2] && rows[1] > 0 &&
         rows[2] > 0;
}

// The forward product, if it and its gradient alone read the rows, and no node changes the table meanwhile.
int product_of(const Graph& graph, const Uses& uses, const RowProduct& p, int lookup, int rows) {
  int found = -1;
  for (const int reader : uses.readers(rows)) {
    if (reader == p.grad) continue;
    const GraphNode& node = graph.nodes[reader];
    if (found >= 0 || node.op->type != "matmul" || !is_of_rows(graph, node)) return -1;
    if (input_var(node, "X") != p.x || input_var(node, "Y") != rows) return -1;
    found = reader;
  }
  const auto& writers = uses.writers(p.table);
  const bool changes = std::any_of(writers.begin(), writers.end(), [&](int at) { return at > lookup && at < p.grad; });
  return changes ? -1 : found;
}

}  // namespace

std::optional<RowProduct> find_row_product(const Graph& graph, const Uses& uses, int grad) {
  const GraphNode& node = graph.nodes[grad];
  if (node.op->type != "matmul_grad" || !is_of_rows(graph, node)) return {};
  RowProduct p;
  p.grad = grad;
  p.x = input_var(node, "X");
  p.dout = input_var(node, "Out@GRAD");
  p.dx = output_var(node, "X@GRAD");
  const int rows = input_var(node, "Y"), by = uses.writer(rows);
  if (p.dout < 0 || by < 0 || !uses.is_inner(rows) || uses.writers(p.x).size() > 1 || uses.writers(p.dout).size() > 1) {
    return {};
  }
  const GraphNode& lookup = graph.nodes[by];
  if (!is_lookup(graph, lookup)) return {};
  p.table = input_var(lookup, "W");
  p.ids = input_var(lookup, "Ids");
  const Shape& shape = graph.vars[rows].desc.shape;
  p.count = shape[1];
  if (shape[1] * shape[2] <= fused::kMostInRowProduct) p.matmul = product_of(graph, uses, p, by, rows);
  if (p.matmul >= 0) p.lookup = by;
  return p;
}

}  // namespace anabranch::embeddings
