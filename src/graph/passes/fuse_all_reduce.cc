// fuse_all_reduce_ops: the collectives of consecutive gradients become one node, so that small gradients do not each
// cost a hand-off. A bucket never mixes sparse and dense gradients, and ends at the first op that reads one of its
// sums.
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/flags.h"
#include "graph/edit.h"
#include "graph/passes/passes.h"

namespace anabranch {
namespace {

constexpr int64_t kSmallElems = 1 << 14;    // a larger gradient deserves its own node and thread
constexpr int64_t kMeetingElems = 1 << 22;  // between processes: below it a meeting costs as much as its data

bool is_small_dense(const Graph& graph, const GraphNode& node) {
  const std::string& type = node.op->type;
  if (type != "all_reduce" && type != "ring_sum" && type != "broadcast_from_owner") return false;
  const ir::Var& desc = graph.vars[node.ins[0]].desc;
  const int64_t n = desc.shape.numel();
  return desc.kind == VarKind::kLoDTensor && n >= 0 && n <= (node.op->type == "ring_sum" ? kMeetingElems : kSmallElems);
}

bool touches(const Graph& graph, const GraphNode& node, const std::set<int>& sums) {
  const auto in_sums = [&](int v) { return sums.count(v) != 0; };
  const auto reads = graph.reads(node), writes = graph.writes(node);
  return std::any_of(reads.begin(), reads.end(), in_sums) || std::any_of(writes.begin(), writes.end(), in_sums);
}

// Collectives that may become one node.
struct Bucket {
  std::vector<int> members;
  std::set<int> sums;  // their outputs, and their inputs

  void add(int i, const GraphNode& node) {
    members.push_back(i);
    sums.insert(node.outs.begin(), node.outs.end());
    sums.insert(node.ins.begin(), node.ins.end());
  }
};

GraphNode merged(const Graph& graph, const std::vector<int>& members) {
  const auto extend = [](auto& a, const auto& b) { a.insert(a.end(), b.begin(), b.end()); };
  GraphNode node = graph.nodes[members[0]];
  auto op = std::make_shared<ir::Op>(*node.op);
  auto pairs = op->attr<std::vector<std::string>>("op_role_var");
  for (size_t k = 1; k < members.size(); ++k) {
    const GraphNode& more = graph.nodes[members[k]];
    extend(op->inputs[0].args, more.op->inputs[0].args);
    extend(op->outputs[0].args, more.op->outputs[0].args);
    extend(pairs, more.op->attr<std::vector<std::string>>("op_role_var"));
    extend(node.ins, more.ins);
    extend(node.outs, more.outs);
  }
  op->attrs["op_role_var"] = std::move(pairs);
  op->attrs["groups"] = static_cast<int32_t>(members.size());
  node.op = std::move(op);
  return node;
}

// The node takes the position of its last member: its inputs are complete there, and no node has read the sums yet.
int close(const Graph& graph, const Bucket& bucket, GraphEdit* edit) {
  if (bucket.members.size() < 2) return 0;
  edit->put(bucket.members.back(), merged(graph, bucket.members));
  for (size_t k = 0; k + 1 < bucket.members.size(); ++k) edit->remove(bucket.members[k]);
  return static_cast<int>(bucket.members.size()) - 1;
}

int fuse_all_reduce(Graph& graph, const PassContext&) {
  const int64_t flag = std::get<int64_t>(get_flag("FLAGS_fuse_parameter_groups_size"));
  const size_t limit = flag <= 0 ? SIZE_MAX : static_cast<size_t>(flag);
  GraphEdit edit(graph);
  Bucket bucket;
  int fused = 0;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const GraphNode& node = graph.nodes[i];
    const bool small = is_small_dense(graph, node);
    const GraphNode* first = bucket.members.empty() ? nullptr : &graph.nodes[bucket.members[0]];
    const bool joins = small && first && node.op->type == first->op->type && bucket.members.size() < limit &&
                       node.replica == first->replica && node.outs.size() == first->outs.size();
    if (first && !joins && touches(graph, node, bucket.sums)) {
      fused += close(graph, std::exchange(bucket, {}), &edit);
      first = nullptr;
    }
    if (joins || (small && !first)) bucket.add(i, node);
  }
  fused += close(graph, bucket, &edit);
  edit.commit();
  return fused;
}

}  // namespace

const Pass kFuseAllReduce = {.name = "fuse_all_reduce",
                             .what = "sums small gradients in one collective",
                             .tolerance = "bit-equal",
                             .needs = AB_SWITCH(fuse_all_reduce_ops),
                             .on_devices = true,
                             .run = fuse_all_reduce};

}  // namespace anabranch
