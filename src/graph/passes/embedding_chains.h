// What the pass fuse_embeddings looks for: look-ups in a table on their way into a concat, and the gradients on their
// way back. Recognises, changes nothing.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace anabranch::embeddings {

inline constexpr int kNotPooled = 0;  // the other numbers are ops/sparse/row_loops.h's Pool

// Who writes and who reads each variable of a graph.
class Uses {
 public:
  explicit Uses(const Graph& graph);
  const std::vector<int>& writers(int var) const { return writers_[var]; }
  const std::vector<int>& readers(int var) const { return readers_[var]; }
  // The one node that writes it; -1 when there is none, or another one.
  int writer(int var) const;
  // A value that nobody outside of the graph's nodes can see, written once.
  bool is_private(int var) const;

 private:
  const Graph& graph_;
  std::vector<std::vector<int>> writers_, readers_;
};

// Variable of a slot with one argument; -1: none, or several.
int in_var(const GraphNode& node, std::string_view slot, int argument = 0);
int out_var(const GraphNode& node, std::string_view slot, int argument = 0);

// A part of a concat that comes from a table: lookup -> [reshape or sequence_pool] -> concat.
struct Lookup {
  std::vector<int> nodes;  // which make it
  std::vector<int> vars;   // which they write
  int table = -1, ids = -1;
  int pool = kNotPooled;
  float empty = 0;
  int64_t padding = -1;
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
  int pool = kNotPooled;
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
