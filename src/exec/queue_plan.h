// Waits between queues: for a plan with nodes on devices, the few events that enforce its edges. The launching thread
// visits the nodes in plan order. A queue runs its work in order, so an edge within one costs nothing; an edge from the
// host costs nothing either, because the host's part is done before the launch. Every other edge becomes an event,
// unless an earlier wait of the queue, or of the host, already implies that the node has passed.
#pragma once
#include <span>
#include <vector>

#include "exec/plan.h"

namespace anabranch {

class QueuePlan {
 public:
  QueuePlan() = default;
  explicit QueuePlan(const Plan& plan);

  // Nodes whose events node i waits for: its queue, or the host if the host runs it.
  std::span<const int> waits(int i) const {
    return {waits_.data() + first_wait_[i], waits_.data() + first_wait_[i + 1]};
  }
  bool records(int i) const { return records_[i] != 0; }  // an event after node i is waited for
  // The last node of each queue, -1 if it has none: when these have passed, all have.
  const std::vector<int>& last() const { return last_; }

 private:
  std::vector<int> waits_, first_wait_;
  std::vector<char> records_;
  std::vector<int> last_;
};

}  // namespace anabranch
