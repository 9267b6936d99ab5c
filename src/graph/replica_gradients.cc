#include "graph/replica_gradients.h"

#include <algorithm>

#include "graph/edit.h"

namespace anabranch {
namespace {

const LossBranch* made_by(const std::vector<LossBranch>& branches, int index) {
  const auto it = std::find_if(branches.begin(), branches.end(), [&](const auto& b) { return b.made_by == index; });
  return it == branches.end() ? nullptr : &*it;
}

}  // namespace

ReplicaGradients::ReplicaGradients(const ir::Block& block, const ReplicateOptions& options,
                                   const std::set<std::string>& looked_at, Ownership& ownership, Graph& graph,
                                   ReplicaNodes& nodes)
    : block_(block), options_(options), looked_at_(looked_at), ownership_(ownership), graph_(graph), nodes_(nodes) {
  AB_CHECK(options_.loss_name.empty() || block_.find_var_recursive(options_.loss_name) != nullptr, NotFound,
           "loss_name {} names no variable of the program", options_.loss_name);
  if (options_.exact_fluid || options_.build.gradient_scale_strategy != GradientScale::kCoeffNumDevice) return;
  branches_ = loss_branches(block_);
}

void ReplicaGradients::add_seed(int index, const ir::OpRef& op) {
  const auto scale = options_.build.gradient_scale_strategy;
  if (scale == GradientScale::kCustomized) {
    for (int r = 0; r < options_.replicas; ++r) nodes_.var(op->output("Out").at(0), r);
    return;  // the user feeds it
  }
  const auto branches = branches_.find(index);
  const bool weighted = branches != branches_.end();
  const LossBranch* here = weighted ? made_by(branches->second, index) : nullptr;
  const int counted = (options_.exact_fluid ? options_.replicas : options_.active) * options_.trainers;
  if (here && by_servers()) return push_trainer_weights(index, op, *here, false);
  const float even = 1.0f / static_cast<float>(counted);
  for (int r = 0; r < options_.active; ++r) {
    if (here && (!here->counted.empty() || in_ring())) {
      push_weight(index, op, *here, r, false);
      continue;
    }
    auto seed = std::make_shared<ir::Op>(*op);
    const bool one = scale == GradientScale::kOne || (weighted && !here);
    seed->attrs["value"] = one ? 1.0f : even;
    seed->attrs["str_value"] = std::string();
    nodes_.add(index, seed, r, false);
  }
}

void ReplicaGradients::add_after(int index, const ir::OpRef& op) {
  weight_branches(index);
  if ((options_.replicas == 1 && !in_ring()) || is_update(*op))
    return;  // clips name their gradient too, but it has been summed by then
  for (const auto& [param, grad] : op->role_vars()) add_sum(index, op, param, grad);
}

void ReplicaGradients::weight_branches(int index) {
  for (const auto& [seed, branches] : branches_) {
    for (const auto& b : branches) {
      if (b.made_by != index) continue;
      if (by_servers()) {
        push_trainer_weights(index, block_.ops()[index], b, true);
        continue;
      }
      for (int r = 0; r < options_.active; ++r) push_weight(index, block_.ops()[index], b, r, true);
    }
  }
}

std::vector<int> ReplicaGradients::counted_by(const LossBranch& branch) {
  std::vector<int> counted;
  for (int r = 0; r < options_.active && !branch.counted.empty(); ++r) {
    counted.push_back(nodes_.read(branch.counted, r));
  }
  return counted;
}

void ReplicaGradients::push_weight(int index, const ir::OpRef& near, const LossBranch& branch, int replica,
                                   bool in_place) {
  const std::string& grad = branch.gradient;
  std::vector<int> counted = counted_by(branch);
  const int var = in_place ? nodes_.read(grad, replica) : nodes_.write(grad, replica);
  NodeBuilder builder(graph_, in_ring() ? "ring_weight" : "replica_weight", near, index, replica);
  builder.attr("op_role", int32_t{ir::role::kBackward | ir::role::kLoss})
      .attr("replica", int32_t{replica})
      .attr("active", int32_t{options_.active})
      .attr("dtype", static_cast<int32_t>(nodes_.describe(grad).dtype));
  GraphNode node = builder.in("Counted", counted).in("X", in_place ? var : -1).out("Out", var).done();
  node.only_shapes = std::move(counted);
  nodes_.push(std::move(node));
}

void ReplicaGradients::push_trainer_weights(int index, const ir::OpRef& near, const LossBranch& branch, bool in_place) {
  const std::string& grad = branch.gradient;
  std::vector<int> counted = counted_by(branch), vars;
  for (int r = 0; r < options_.active; ++r) vars.push_back(in_place ? nodes_.read(grad, r) : nodes_.write(grad, r));
  NodeBuilder builder(graph_, "trainer_weight", near, index, 0);
  builder.attr("op_role", int32_t{ir::role::kBackward | ir::role::kLoss})
      .attr("trainer_id", int32_t{options_.trainer->number})
      .attr("servers", options_.trainer->servers)
      .attr("meeting", fmt::format("rows of {}", grad))
      .attr("dtype", static_cast<int32_t>(nodes_.describe(grad).dtype));
  GraphNode node = builder.in("Counted", counted).in("X", in_place ? vars : std::vector<int>()).out("Out", vars).done();
  node.only_shapes = std::move(counted);
  nodes_.push(std::move(node));
}

// The gradient of a parameter becomes the sum over the replicas, on its owner, the only replica that updates the
// parameter; in AllReduce mode also on the others, if it has readers there.
void ReplicaGradients::add_sum(int index, const ir::OpRef& op, const std::string& param, const std::string& grad) {
  const auto outs = op->output_args();
  if (std::find(outs.begin(), outs.end(), grad) == outs.end()) return;
  const ir::Var& desc = nodes_.describe(grad);
  const int owner = ownership_.choose_owner(grad, desc.shape.numel() * static_cast<int64_t>(dtype_size(desc.dtype)));
  const bool everywhere =
      options_.build.reduce_strategy == ReduceMode::kAllReduce && (options_.apart || looked_at_.count(grad) != 0);
  std::vector<int> parts, sums;
  for (int r = 0; r < options_.active; ++r) parts.push_back(nodes_.read(grad, r));
  for (int r = 0; r < options_.replicas; ++r) {
    if (everywhere || r == owner) sums.push_back(nodes_.var(grad, r));
  }
  const std::vector<std::string> pair{param, grad};
  // If all replicas get the sum no argument comes first, so that sums of any parameters fit into one node.
  const int at = options_.apart && everywhere ? 0 : owner;
  const auto add_up = [&](const std::vector<int>& x, const std::vector<int>& out) {
    NodeBuilder node(graph_, "all_reduce", op, index, at);
    node.attr("op_role", int32_t{ir::role::kBackward}).attr("op_role_var", pair);
    nodes_.push(node.in("X", x).out("Out", out).done());
  };
  const int mine = nodes_.var(grad, owner);
  if (!in_ring()) return add_up(parts, sums);
  if (options_.replicas > 1) add_up(parts, {mine});
  add_ring_sum(index, op, pair, owner);
  if (sums.size() < 2) return;
  if (!options_.apart || nodes_.describe(grad).kind != VarKind::kLoDTensor) return add_up({mine}, sums);
  broadcast_from_owner(op, index, grad, owner);
}

// Copies a variable from the owner's device to all.
void ReplicaGradients::broadcast_from_owner(const ir::OpRef& near, int index, const std::string& name, int owner) {
  std::vector<int> all;
  for (int r = 0; r < options_.replicas; ++r) all.push_back(nodes_.var(name, r));
  NodeBuilder node(graph_, "broadcast_from_owner", near, index, 0);
  node.attr("op_role_var", std::vector<std::string>());
  nodes_.push(node.in("X", nodes_.var(name, owner)).out("Out", all).done());
}

// Each process sums its replicas; then the processes sum their results.
void ReplicaGradients::add_ring_sum(int index, const ir::OpRef& op, const std::vector<std::string>& pair, int owner) {
  const std::vector<int> mine{nodes_.var(pair[1], owner)};
  NodeBuilder node(graph_, "ring_sum", op, index, owner);
  node.attr("op_role", int32_t{ir::role::kBackward}).attr("op_role_var", pair);
  nodes_.push(node.in("X", mine).out("Out", mine).done());
}

}  // namespace anabranch
