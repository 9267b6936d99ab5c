// What a step says of its memory when there is no room for it.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
#include "graph/graph.h"

namespace anabranch {

// The variables that node i makes: "fc_0.w_0".
std::string made_by(const Graph& graph, int node);
// The error of an arena for which there was no room at `place`: names the node at which most temporaries are alive
// there, and the largest of them.
Error without_room(Error error, Place place, const Graph& graph, const Lowered& lowered,
                   const std::vector<Temporary>& temporaries);

}  // namespace anabranch
