// Which nodes a device runs: what place_on_devices decides, and passes before it ask.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "opdef/infer_context.h"

namespace anabranch {

// device_guard("cpu") is around the layer.
bool is_guarded(const ir::Op& op);

// The dtypes of the node's inputs, as far as graphs know them; nothing else is filled.
std::vector<Meta> metas_of(const Graph& graph, const GraphNode& node);

// The plug-in has kernels for the node, with inputs of these dtypes, and nothing about it asks for the host: sparse
// rows that its kernels do not take, shapes that depend on values, blocks, another machine, device_guard("cpu").
bool runs_on_device(const Graph& graph, const GraphNode& node, const std::vector<Meta>& ins);

}  // namespace anabranch
