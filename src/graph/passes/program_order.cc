// enable_sequential_execution: every node holds one token, so nodes run in program order on any number of threads.
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

constexpr int kToken = 1;

int run(Graph& graph, const PassContext&) {
  for (GraphNode& node : graph.nodes) node.tokens.push_back(kToken);
  return static_cast<int>(graph.nodes.size());
}

}  // namespace

const Pass kProgramOrder = {"program_order", "nodes keep program order", "bit-equal",
                            [](const PassContext& c) -> const char* {
                              return c.build.enable_sequential_execution ? nullptr
                                                                         : "enable_sequential_execution is False";
                            },
                            run};

}  // namespace anabranch
