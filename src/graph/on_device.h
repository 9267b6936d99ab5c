// The nodes that run on a device: decided by place_on_devices, and queried by earlier passes.
#pragma once
#include <vector>

#include "graph/graph.h"
#include "opdef/infer_context.h"

namespace anabranch {

// The layer is inside device_guard("cpu").
bool is_guarded(const ir::Op& op);

// The dtypes of the node's inputs, as far as graphs know them; nothing else is set.
std::vector<Meta> metas_of(const Graph& graph, const GraphNode& node);

// The plug-in has kernels for the node with these input dtypes, and nothing forces it to the host: sparse rows that its
// kernels do not accept, shapes that depend on values, blocks, another machine, device_guard("cpu").
bool runs_on_device(const Graph& graph, const GraphNode& node, const std::vector<Meta>& ins);

}  // namespace anabranch
