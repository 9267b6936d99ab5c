// What the pass fuse_embeddings looks for: look-ups in a table on their way into a concat, and the gradients on their
// way back. Recognises, changes nothing.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/edit.h"
#include "opdef/fused_ops.h"

namespace anabranch::embeddings {

using fused::Pool;

// A part of a concat that comes from a table: lookup -> [reshape or sequence_pool] -> concat.
struct Lookup {
  std::vector<int> nodes;  // which make it
  std::vector<int> vars;   // which they write
  int table = -1, ids = -1;
  Pool pool = Pool::kNone;
  float empty = 0;
  int64_t padding = -1;
  bool last_is_one = false;  // the last extent of Ids is 1 and becomes the width
};
std::optional<Lookup> find_lookup(const Graph& graph, const Uses& uses, int part);

// Matrices put side by side, all of known width: the only concats (and concat_grads) that are looked at.
struct Columns {
  std::vector<int> parts, widths, begins;
};
std::optional<Columns> find_columns(const Graph& graph, const GraphNode& concat);

// The gradient of one look-up of a table: where the gradients of its rows lie.
struct Source {
  int lookup_grad = -1;
  int ids = -1, grad = -1;  // variables
  int column = 0, per_row = 1;
  int columns = 0;  // of the tensor that holds them; 0: they are all of it
  Pool pool = Pool::kNone;
  int64_t padding = -1;
  std::vector<int> nodes;  // on the way back, not needed any more
  int concat_grad = -1, part = -1;
};
// The sparse gradient of a table: by one lookup_table_grad, or the sum of several.
struct TableGrad {
  int var = -1, table = -1;
  int node = -1;  // the one that writes var
  std::vector<Source> sources;
};
std::vector<TableGrad> find_table_grads(const Graph& graph, const Uses& uses);

}  // namespace anabranch::embeddings
