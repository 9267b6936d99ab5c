// Properties of the values that a step's graph uses: which of them a run may change, which may share memory, and their
// description in errors.
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

// Variables that a run may change: ops also list outputs that they leave unchanged (statistics while testing).
std::set<int> changed_vars(const Graph& graph);
// Replicas whose nodes use a variable.
int users_of(const Graph& graph, int var);
// Number of elements that the nodes read and write, counted for each use.
int64_t touched_elems(const Graph& graph, const Lowered& lowered);
// Values that only nodes of the plan use, after one of them has written them. `in_place`: results may share their
// operands' memory.
std::vector<Temporary> find_temporaries(const Graph& graph, const Lowered& lowered, bool in_place);

// Whether persistent values are where the graph has them, and moving them there.
bool is_in_place(const Graph& graph, const Lowered& lowered);
void move_into_place(const Graph& graph, const Lowered& lowered);

// InvalidArgument if a float that the node has written is not finite.
void check_finite(const Graph& graph, const Lowered& lowered, int node);
void check_finite(const Value& value, const std::string& name);
// A line of an error: "inputs X = price float64 [4, 1], fed; Y = ...", with the dtype and shape of each value.
std::string inputs_of(const Graph& graph, const Lowered& lowered, int node);
// The error of a run, with the op that failed (-1: none did) and the persistable variables that had changed before.
Error describe_failure(Error error, int node, const Graph& graph, const Lowered& lowered, const RunState& state);

}  // namespace anabranch
