// Additions to the program's ops for data-parallel training: the initial loss gradient of each replica, weighted by the
// rows it counted (loss_seed.h), and the sum of each parameter's gradients over the replicas.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/loss_seed.h"
#include "graph/replica_nodes.h"
#include "graph/replicate.h"

namespace anabranch {

class ReplicaGradients {
 public:
  // `looked_at`: names that are fetched, or read by other ops than updates. All are borrowed.
  ReplicaGradients(const ir::Block& block, const ReplicateOptions& options, const std::set<std::string>& looked_at,
                   Ownership& ownership, Graph& graph, ReplicaNodes& nodes);

  // Replaces an op that is_loss_seed().
  void add_seed(int index, const ir::OpRef& op);
  // After the nodes of an op: weights of the gradients it computed, and sums of those of parameters.
  void add_after(int index, const ir::OpRef& op);

 private:
  // Other workers share the step, and weights are computed over all of them: by the processes of a ring, or by servers.
  bool in_ring() const { return options_.trainers > 1; }
  bool by_servers() const { return !in_ring() && options_.trainer && options_.trainer->in_step; }
  void weight_branches(int index);
  // Weights the gradient of a branch on one replica, by the rows of all replicas of this process, or of the ring.
  void push_weight(int index, const ir::OpRef& near, const LossBranch& branch, int replica, bool in_place);
  // The same for all active replicas of a worker whose servers count the rows of all workers: one message.
  void push_trainer_weights(int index, const ir::OpRef& near, const LossBranch& branch, bool in_place);
  std::vector<int> counted_by(const LossBranch& branch);
  void add_ring_sum(int index, const ir::OpRef& op, const std::vector<std::string>& pair, int owner);
  void broadcast_from_owner(const ir::OpRef& near, int index, const std::string& name, int owner);
  void add_sum(int index, const ir::OpRef& op, const std::string& param, const std::string& grad);

  const ir::Block& block_;
  const ReplicateOptions& options_;
  const std::set<std::string>& looked_at_;
  Ownership& ownership_;
  Graph& graph_;
  ReplicaNodes& nodes_;
  std::map<int, std::vector<LossBranch>> branches_;  // of each loss, by its seed op
};

}  // namespace anabranch
