// fuse_all_reduce_ops: the collectives of consecutive gradients become one node, so that small gradients do not cost a
// hand-off each. A bucket never mixes sparse and dense gradients and ends at the first op that reads one of its sums.
#include <algorithm>
#include <set>

#include "base/flags.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

constexpr int64_t kSmallElems = 1 << 14;  // a larger gradient is worth a node, and a thread, of its own

bool is_small_dense(const Graph& graph, const GraphNode& node) {
  if (node.op->type != "all_reduce") return false;
  const ir::Var& desc = graph.vars[node.ins[0]].desc;
  const int64_t n = desc.shape.numel();
  return desc.kind == VarKind::kLoDTensor && n >= 0 && n <= kSmallElems;
}

bool touches(const Graph& graph, const GraphNode& node, const std::set<int>& sums) {
  const auto in_sums = [&](int v) { return sums.count(v) != 0; };
  const auto reads = graph.reads(node), writes = graph.writes(node);
  return std::any_of(reads.begin(), reads.end(), in_sums) || std::any_of(writes.begin(), writes.end(), in_sums);
}

void append(GraphNode& bucket, const GraphNode& node) {
  const auto extend = [](auto& a, const auto& b) { a.insert(a.end(), b.begin(), b.end()); };
  auto op = std::make_shared<ir::Op>(*bucket.op);
  extend(op->inputs[0].args, node.op->inputs[0].args);
  extend(op->outputs[0].args, node.op->outputs[0].args);
  auto pairs = op->attr<std::vector<std::string>>("op_role_var");
  extend(pairs, node.op->attr<std::vector<std::string>>("op_role_var"));
  op->attrs["op_role_var"] = pairs;
  op->attrs["groups"] = op->attr<int32_t>("groups") + 1;
  bucket.op = op;
  extend(bucket.ins, node.ins);
  extend(bucket.outs, node.outs);
}

int run(Graph& graph, const PassContext&) {
  const int64_t flag = std::get<int64_t>(get_flag("FLAGS_fuse_parameter_groups_size"));
  const int64_t limit = flag <= 0 ? INT64_MAX : flag;
  std::vector<GraphNode> nodes;
  int bucket = -1, fused = 0;
  int64_t filled = 0;
  std::set<int> sums;
  for (GraphNode& node : graph.nodes) {
    const bool small = is_small_dense(graph, node);
    const bool joins = small && bucket >= 0 && filled < limit && node.replica == nodes[bucket].replica &&
                       node.outs.size() * filled == nodes[bucket].outs.size();
    if (!joins && bucket >= 0 && touches(graph, node, sums)) bucket = -1;
    if (joins) {
      // The bucket moves down to its newest member: what it sums is complete there, and nobody has read it yet.
      GraphNode merged = std::move(nodes[bucket]);
      nodes.erase(nodes.begin() + bucket);
      append(merged, node);
      sums.insert(node.outs.begin(), node.outs.end());
      sums.insert(node.ins.begin(), node.ins.end());
      nodes.push_back(std::move(merged));
      bucket = static_cast<int>(nodes.size()) - 1;
      ++filled;
      ++fused;
      continue;
    }
    nodes.push_back(std::move(node));
    if (small && bucket < 0) {
      bucket = static_cast<int>(nodes.size()) - 1;
      filled = 1;
      sums = {nodes.back().outs.begin(), nodes.back().outs.end()};
      sums.insert(nodes.back().ins.begin(), nodes.back().ins.end());
    }
  }
  graph.nodes = std::move(nodes);
  return fused;
}

}  // namespace

const Pass kFuseAllReduce = {.name = "fuse_all_reduce",
                             .what = "collectives of small gradients share a node",
                             .tolerance = "bit-equal",
                             .needs = AB_SWITCH(fuse_all_reduce_ops),
                             .run = run};

}  // namespace anabranch
