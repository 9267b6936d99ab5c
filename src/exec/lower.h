// Graph -> Plan: the last stage that knows names. Variables become pointers to Values, ops become kernels; a table next
// to the plan keeps the texts for error messages.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/block_plan.h"
#include "exec/plan.h"
#include "exec/stage_graph.h"
#include "graph/build_strategy.h"
#include "graph/graph.h"

namespace anabranch {

struct LowerOptions {
  const ir::Program* program = nullptr;
  // The Value of a variable that lives outside the plan; null for a temporary. Called once per variable.
  std::function<Value*(const GraphVar&)> outside;
  Parallel* parallel = nullptr;
  uint64_t seed = 0;      // for random ops without a seed
  bool seeded = false;    // the program gives the seed
  BuildStrategy build;    // of the passes in sub-blocks,
  std::string disable;    // which may be disabled (PassContext)
  int first_replica = 0;  // number of replicas before this one: random numbers differ between workers
};

struct Lowered {
  std::unique_ptr<Plan> plan;
  std::vector<Value> temporaries;        // contiguous, in order of creation
  std::vector<Value*> values;            // by graph variable
  std::vector<char> is_outside;          // by graph variable: its value outlives the plan
  std::vector<std::string> describe;     // by node: "#12 mul -> fc_0.tmp_0 (forward, block 0)  made at ..."
  std::vector<std::string> types;        // by node: op type
  std::vector<int> replicas;             // by node
  std::vector<std::vector<int>> writes;  // by node: graph variables it writes
  std::vector<Capturable> capturable;    // by node, for Queues::capture(); none where the CPU runs all
  bool has_dynamic = false;
  bool trusts_shapes = false;                     // passes in sub-blocks do (PassReport)
  std::vector<InnerNode> inner_nodes;             // ops of sub-blocks: their numbers in traces follow those of the plan
  std::string explain_blocks;                     // what passes did in sub-blocks
  std::vector<std::shared_ptr<BlockSet>> blocks;  // by replica; none if the program has no sub-blocks
  // Description of node i for stall reports: its line of `describe`, and the position inside its block. From any
  // thread.
  std::function<std::string(int)> report;
};

Lowered lower(const Graph& graph, const LowerOptions& options);

}  // namespace anabranch
