// Finds lookups in a table that end in a concat, and their gradients on the way back, for the pass fuse_embeddings.
// Does not change the graph.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "graph/passes/patterns/row_products.h"
#include "opdef/fused_ops.h"

namespace anabranch::embeddings {

using fused::Pool;

// An operand of a concat that comes from a table: lookup -> [reshape or sequence_pool] -> concat.
struct Lookup {
  std::vector<int> nodes;  // that compute it
  std::vector<int> vars;   // that they write
  int table = -1, ids = -1;
  Pool pool = Pool::kNone;
  float empty = 0;
  int64_t padding = -1;
  bool last_is_one = false;  // the last extent of Ids is 1 and becomes the width
};
std::optional<Lookup> find_lookup(const Graph& graph, const Uses& uses, int part);

// The operands of a concat of matrices by columns, all of known width. Other concats (and concat_grads) do not match.
struct Columns {
  std::vector<int> parts, widths, starts;
};
std::optional<Columns> find_columns(const Graph& graph, const GraphNode& concat);

// The gradient of one lookup of a table: where the gradients of its rows are.
struct Source {
  int lookup_grad = -1;
  int ids = -1, grad = -1;  // variables
  int column = 0, per_row = 1;
  int columns = 0;  // of the tensor that holds them; 0: the whole tensor
  Pool pool = Pool::kNone;
  int64_t padding = -1;
  std::vector<int> nodes;  // on the way back, no longer needed
  int concat_grad = -1, part = -1;
  std::optional<RowProduct> product;  // the rows' gradients are those of `grad`, each times a number
};
// The sparse gradient of a table: from one lookup_table_grad, or the sum of several.
struct TableGrad {
  int var = -1, table = -1;
  int node = -1;  // the one that writes var
  std::vector<Source> sources;
};
std::vector<TableGrad> find_table_grads(const Graph& graph, const Uses& uses);

}  // namespace anabranch::embeddings
