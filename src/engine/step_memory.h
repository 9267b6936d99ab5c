// Errors of a step for which there is not enough memory.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
#include "graph/graph.h"

namespace anabranch {

// The outputs of node i: "fc_0.w_0".
std::string made_by(const Graph& graph, int node);
// The error of an arena that did not fit at `place`: names the node with the largest total of live temporaries there,
// and the largest of them.
Error without_room(Error error, Place place, const Graph& graph, const Lowered& lowered,
                   const std::vector<Temporary>& temporaries);

}  // namespace anabranch
