// share_sum_gradients: the terms of a sum that have its shape have its gradient, too. Readers of a term's gradient read
// the sum's instead, and it is not copied - if every gradient that the op computes is such a one, is not kept or
// fetched, and the sum's gradient is not written again. Gradients of parameters keep their names, by which servers
// identify them.
#include <algorithm>
#include <vector>

#include "graph/edit.h"
#include "graph/passes/passes.h"
#include "graph/passes/row_sources.h"

namespace anabranch {
namespace {

bool is_of_parameter(const Graph& graph, int gradient) {
  const GraphVar& v = graph.vars[gradient];
  const int forward = graph.find(v.name.substr(0, v.name.find("@GRAD")), v.replica);
  return forward >= 0 && graph.vars[forward].desc.persistable;
}

// The node's outputs, if all of them equal the gradient of the sum; else nothing.
std::vector<int> shared_gradients(const Graph& graph, const Uses& uses, const RowSources& rows, int i) {
  const GraphNode& node = graph.nodes[i];
  if (node.op->type != "elementwise_add_grad" || !is_plain(node)) return {};
  const int dsum = input_var(node, "Out@GRAD");
  std::vector<int> gradients;
  for (const char* slot : {"X@GRAD", "Y@GRAD"}) {
    if (const int v = output_var(node, slot); v >= 0) gradients.push_back(v);
  }
  const bool all = std::all_of(gradients.begin(), gradients.end(), [&](int v) {
    return dsum >= 0 && rows.alike(dsum, v) && !is_of_parameter(graph, v) && may_read_instead(graph, uses, i, dsum, v);
  });
  return all ? gradients : std::vector<int>();
}

int share_sum_gradients(Graph& graph, const PassContext&) {
  int removed = 0;
  GraphEdit edit(graph);
  const RowSources rows(graph);
  std::vector<int> sum_of(graph.vars.size(), -1);  // of gradients of terms: the gradient to read
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    GraphNode& node = graph.nodes[i];
    for (int v : std::vector<int>(node.ins)) {
      if (v >= 0 && sum_of[v] >= 0) read_instead(graph, node, v, sum_of[v]);
    }
    const auto gradients = shared_gradients(graph, edit.uses, rows, static_cast<int>(i));
    if (gradients.empty()) continue;
    for (const int v : gradients) sum_of[v] = input_var(node, "Out@GRAD");
    edit.remove(static_cast<int>(i));
    ++removed;
  }
  edit.commit();
  return removed;
}

}  // namespace

const Pass kShareSumGradients = {.name = "share_sum_gradients",
                                 .what = "shares one gradient among all terms of a sum",
                                 .tolerance = "bit-equal",
                                 .on_devices = true,
                                 .run = share_sum_gradients};

}  // namespace anabranch
