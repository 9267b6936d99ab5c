// enable_sequential_execution: every node holds one token, so nodes run in program order on any number of threads.
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

constexpr int kToken = 1;

int program_order(Graph& graph, const PassContext&) {
  for (GraphNode& node : graph.nodes) node.tokens.push_back(kToken);
  return static_cast<int>(graph.nodes.size());
}

}  // namespace

const Pass kProgramOrder = {.name = "program_order",
                            .what = "runs ops in program order",
                            .tolerance = "bit-equal",
                            .needs = AB_SWITCH(enable_sequential_execution),
                            .keeps_ops = true,
                            .on_devices = true,
                            .run = program_order};

}  // namespace anabranch
