// For stall reports: the servers that a node of a worker waits for.
#pragma once
#include <functional>
#include <string>

#include "graph/graph.h"

namespace anabranch {

// Describes a node as `describe` does; of a node that talks to servers also those that have not answered. From any
// thread.
std::function<std::string(int)> with_server_waits(const Graph& graph, std::function<std::string(int)> describe);

}  // namespace anabranch
