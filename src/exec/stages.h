// Launch order of a plan with nodes on devices when parts of it are captured as graphs: a stage is one node, or
// neighbors in a queue that become one graph. A graph waits, before its first node, for all that any of its nodes
// waits for, and events after its nodes come after all of it; so a stage ends before a node of another queue, or of the
// host, that depends on one of its nodes.
#pragma once
#include <vector>

#include "exec/queue_plan.h"
#include "exec/stage_graph.h"

namespace anabranch {

struct Stage {
  int queue_index = kHost;
  bool captured = false;  // as a graph; false: one node
  std::vector<int> nodes = {};
  std::vector<int> waits = {};            // of a graph: the nodes of other queues that it waits for
  std::vector<const Value*> values = {};  // of a graph: the values that its nodes use, each once
  StageGraph graph = {};
};

// nodes: of the plan, by number. Graphs hold at least `least` of them.
std::vector<Stage> make_stages(const Plan& plan, const QueuePlan& queues, const std::vector<Capturable>& nodes,
                               size_t least);

}  // namespace anabranch
