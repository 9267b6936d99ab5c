// Finds products of a row with looked-up rows, as in word2vec, and their gradients, for the pass fuse_embeddings.
//
//   rows = lookup(table, ids)                [B, K, D]
//   out = matmul(x, rows, transpose_y=True)  [B, 1, K] from x [B, 1, D]
//
// The gradient of a row is x times one number, so that neither it nor `rows` need be in memory. Does not change the
// graph.
#pragma once
#include <optional>

#include "graph/edit.h"

namespace anabranch::embeddings {

// A lookup in a dense table of floats: other tables, of 8-bit levels or of existing rows only, are looked up alone.
inline bool is_lookup(const Graph& graph, const GraphNode& node) {
  if (node.op->type != "lookup_table" && node.op->type != "lookup_table_v2") return false;
  const ir::Var& table = graph.vars[input_var(node, "W")].desc;
  return table.kind == VarKind::kLoDTensor && table.dtype != DType::kInt8;
}

struct RowProduct {
  int lookup = -1, matmul = -1, grad = -1;               // nodes; lookup and matmul are -1 if other nodes need `rows`
  int table = -1, ids = -1, x = -1, dout = -1, dx = -1;  // variables; dx: -1 if no node needs it
  int64_t count = 0;                                     // of rows that are multiplied with one x
};

// The product whose gradient op is this node.
std::optional<RowProduct> find_row_product(const Graph& graph, const Uses& uses, int grad);

}  // namespace anabranch::embeddings
