// What a step wants to know of the values that its graph uses: which of them a run may change, which may share memory,
// and what to say of them in errors.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
#include "exec/run.h"
#include "graph/graph.h"

namespace anabranch {

// Variables that a run may change: ops list as outputs, too, what they leave alone (statistics while testing).
std::set<int> changed_vars(const Graph& graph);
// Replicas whose nodes touch a variable.
int users_of(const Graph& graph, int var);
// Elements that the nodes read and write, each as often as it is.
int64_t touched_elems(const Graph& graph, const Lowered& lowered);
// What only nodes of the plan itself look at, and only after one of them has written it. `in_place`: results may lie
// where their operands do.
std::vector<Temporary> find_temporaries(const Graph& graph, const Lowered& lowered, bool in_place);

// What persists lies where the graph has it, and moving it there.
bool is_home(const Graph& graph, const Lowered& lowered);
void bring_home(const Graph& graph, const Lowered& lowered);

// InvalidArgument when a float that the node has written is not finite.
void check_finite(const Graph& graph, const Lowered& lowered, int node);
void check_finite(const Value& value, const std::string& name);
// The error of a run, with the op that failed (-1: none did) and the persistable variables that had changed before.
Error describe_failure(Error error, int node, const Graph& graph, const Lowered& lowered, const RunState& state);

}  // namespace anabranch
