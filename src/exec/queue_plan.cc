#include "exec/queue_plan.h"

#include <algorithm>

namespace anabranch {
namespace {

// By queue: the last node that is known to have passed; -1: none.
using Clock = std::vector<int>;

void join(Clock* to, const Clock& from) {
  for (size_t lane = 0; lane < to->size(); ++lane) (*to)[lane] = std::max((*to)[lane], from[lane]);
}

}  // namespace

QueuePlan::QueuePlan(const Plan& plan)
    : records_(static_cast<size_t>(plan.size()), 0), last_(static_cast<size_t>(plan.lanes()), -1) {
  const int n = plan.size();
  std::vector<std::vector<int>> before(static_cast<size_t>(n));  // in other queues than the node itself
  for (int i = 0; i < n; ++i) {
    if (plan.lane(i) == kHost) continue;
    for (const int next : plan.successors(i)) {
      if (plan.lane(next) != plan.lane(i)) before[next].push_back(i);
    }
  }
  const Clock nothing(last_.size(), -1);
  std::vector<Clock> behind(static_cast<size_t>(n), nothing);  // nodes known to have passed once a node has
  std::vector<Clock> of_lane(last_.size(), nothing);           // and once the next node of a queue starts
  Clock of_host = nothing;
  for (int i = 0; i < n; ++i) {
    first_wait_.push_back(static_cast<int>(waits_.size()));
    const int lane = plan.lane(i);
    Clock& known = lane == kHost ? of_host : of_lane[lane];
    if (lane != kHost) join(&known, of_host);
    // The newest first: its wait may imply the others.
    for (auto at = before[i].rbegin(); at != before[i].rend(); ++at) {
      if (known[plan.lane(*at)] >= *at) continue;
      waits_.push_back(*at);
      records_[*at] = 1;
      join(&known, behind[*at]);
    }
    if (lane == kHost) continue;
    known[lane] = last_[lane] = i;
    behind[i] = known;
  }
  first_wait_.push_back(static_cast<int>(waits_.size()));
  for (const int i : last_) {
    if (i >= 0) records_[i] = 1;
  }
}

}  // namespace anabranch
