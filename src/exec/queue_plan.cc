#include "exec/queue_plan.h"

#include <algorithm>

namespace anabranch {
namespace {

// By queue: the last node that is known to have passed; -1: none.
using Clock = std::vector<int>;

void join(Clock* to, const Clock& from) {
  for (size_t queue_index = 0; queue_index < to->size(); ++queue_index)
    (*to)[queue_index] = std::max((*to)[queue_index], from[queue_index]);
}

}  // namespace

QueuePlan::QueuePlan(const Plan& plan)
    : records_(static_cast<size_t>(plan.size()), 0), last_(static_cast<size_t>(plan.queue_count()), -1) {
  const int n = plan.size();
  std::vector<std::vector<int>> before(static_cast<size_t>(n));  // in other queues than the node itself
  for (int i = 0; i < n; ++i) {
    if (plan.queue_index(i) == kHost) continue;
    for (const int next : plan.successors(i)) {
      if (plan.queue_index(next) != plan.queue_index(i)) before[next].push_back(i);
    }
  }
  const Clock nothing(last_.size(), -1);
  std::vector<Clock> after(static_cast<size_t>(n), nothing);  // nodes known to have passed once a node has
  std::vector<Clock> of_queue(last_.size(), nothing);         // and once the next node of a queue starts
  Clock of_host = nothing;
  for (int i = 0; i < n; ++i) {
    first_wait_.push_back(static_cast<int>(waits_.size()));
    const int queue_index = plan.queue_index(i);
    Clock& known = queue_index == kHost ? of_host : of_queue[queue_index];
    if (queue_index != kHost) join(&known, of_host);
    // The newest first: its wait may imply the others.
    for (auto at = before[i].rbegin(); at != before[i].rend(); ++at) {
      if (known[plan.queue_index(*at)] >= *at) continue;
      waits_.push_back(*at);
      records_[*at] = 1;
      join(&known, after[*at]);
    }
    if (queue_index == kHost) continue;
    known[queue_index] = last_[queue_index] = i;
    after[i] = known;
  }
  first_wait_.push_back(static_cast<int>(waits_.size()));
  for (const int i : last_) {
    if (i >= 0) records_[i] = 1;
  }
}

}  // namespace anabranch
