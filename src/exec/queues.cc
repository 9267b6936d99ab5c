#include "exec/queues.h"

namespace anabranch {

void Queues::follow_edges() {
  order_ = QueuePlan(plan_);
  events_.clear();
  events_.resize(static_cast<size_t>(plan_.size()));
  for (int i = 0; i < plan_.size(); ++i) {
    if (order_.records(i)) events_[i].emplace(devices_, device_of(plan_.lane(i)));
  }
  while (static_cast<int>(workspaces_.size()) < plan_.lanes()) {
    workspaces_.emplace_back(device_of(static_cast<int>(workspaces_.size())));
  }
}

void Queues::launch(Plan& plan, int i, const std::function<std::string(int)>* describe) {
  const int lane = plan.lane(i);
  ab_queue* queue = queue_of(lane);
  if (plan.is_dynamic(i)) plan.infer(i);
  for (const int before : order_.waits(i)) events_[before]->hold(queue);
  if (describe && devices_.wants_marks()) {
    devices_.check(devices_.api().queue_mark(queue, (*describe)(i).c_str()), "naming a node");
  }
  Plan::Node& node = plan.node(i);
  DeviceContext context(node.context, devices_, queue, &workspaces_[lane]);
  node.kernel(context);
  if (order_.records(i)) events_[i]->record(queue);
}

void Queues::wait_all() {
  for (const int i : order_.last()) {
    if (i >= 0) events_[i]->wait();
  }
}

void Queues::abandon() noexcept {
  for (int d = 0; d < devices_.count(); ++d) {
    try {
      devices_.wait(d);
    } catch (const std::exception&) {  // the error that ended the run is the one to tell
    }
  }
}

int64_t Queues::workspace_bytes() const {
  int64_t bytes = 0;
  for (const Workspace& w : workspaces_) bytes += static_cast<int64_t>(w.bytes());
  return bytes;
}

}  // namespace anabranch
