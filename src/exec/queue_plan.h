// Which queue waits for which: of a plan with nodes on devices, the few events that keep its edges. The launching
// thread goes through the nodes in plan order. What a queue holds runs in its order, so an edge within one costs
// nothing; an edge from the host costs nothing either, for the host's part is done when the launch comes. Every other
// edge is an event, unless what the queue, or the host, has waited for before says already that the node has passed.
#pragma once
#include <span>
#include <vector>

#include "exec/plan.h"

namespace anabranch {

class QueuePlan {
 public:
  QueuePlan() = default;
  explicit QueuePlan(const Plan& plan);

  // Nodes behind which events stand that node i waits for: its queue, or the host where that runs it.
  std::span<const int> waits(int i) const {
    return {waits_.data() + first_wait_[i], waits_.data() + first_wait_[i + 1]};
  }
  bool records(int i) const { return records_[i] != 0; }  // somebody waits for an event behind node i
  // The last node of each lane, -1 where it has none: when these have passed, all have.
  const std::vector<int>& last() const { return last_; }

 private:
  std::vector<int> waits_, first_wait_;
  std::vector<char> records_;
  std::vector<int> last_;
};

}  // namespace anabranch
