// State that a plan with nodes on devices keeps between runs: its events, and a workspace for each queue.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/event.h"
#include "exec/device_times.h"
#include "exec/plan.h"
#include "exec/queue_plan.h"
#include "exec/stages.h"
#include "opdef/device_context.h"
#include "opdef/device_status.h"
#include "opdef/meeting_context.h"

namespace anabranch {

// Queues of all devices are numbered.
inline int queue_index_of(int device, device::QueueKind kind) {
  return device * device::kQueueKinds + static_cast<int>(kind);
}

class RunState;

class Queues {
 public:
  using Describe = std::function<std::string(int)>;

  explicit Queues(const Plan& plan) : plan_(plan), devices_(device::Devices::get()) {}

  // The plan's edges have changed.
  void follow_edges();
  // Before the first node of a run, and after the last one.
  void begin(const Plan& plan);
  void end();
  // A fault that a kernel has reported in the run that has passed: the node, -1 for none, and its status.
  struct Reported {
    int node = -1;
    std::string text;
  };
  Reported reported() const;
  using FaultText = std::function<std::string(int node, int code, int64_t detail)>;
  void describe_faults(FaultText text) { fault_text_ = std::move(text); }
  // Enqueues node i after the nodes it waits for.
  void launch(Plan& plan, int i, const Describe* describe);
  // Makes later runs use stages, and captures graphs of at least `least` nodes. nodes: the nodes of the plan.
  void capture(std::vector<Capturable> nodes, size_t least);
  std::vector<Stage>& stages() { return stages_; }  // none: nodes are launched one by one
  // Enqueues a captured stage.
  void launch(Plan& plan, Stage& stage, RunState& state, const Describe* describe);
  // Call it before addresses or signatures of values change.
  void drop_graphs();
  std::string explain_graphs() const;  // a line, or nothing
  // Execution times of nodes in a traced run.
  DeviceTimes& times() {
    if (!times_) times_ = std::make_unique<DeviceTimes>(plan_, devices_);
    return *times_;
  }
  ab_queue* queue_of(int queue_index) const {
    return devices_.queue(device_of(queue_index), static_cast<device::QueueKind>(queue_index % device::kQueueKinds));
  }
  // The nodes that node i, which the host runs, waits for.
  void wait_before(int i) {
    for (const int at : order_.waits(i))
      events_[at]->wait(lookouts_);  // NOLINT(bugprone-unchecked-optional-access): it has one
  }
  // All work in this queue has passed; rethrows its errors.
  void wait_for(int queue_index) const;
  // All launched work has passed; rethrows its errors.
  void wait_all();
  // The same for a run that has failed: further errors are ignored.
  void abandon() noexcept;
  int64_t workspace_bytes() const;

 private:
  void add_status(int queue_index, int node);
  void make_stages();
  void put(Plan& plan, int i, ab_queue* queue, const Describe* describe);
  void put_all(Plan& plan, const Stage& stage, ab_queue* queue, RunState& state, const Describe* describe);
  const char* mark_of(int node, const Describe& describe);
  int device_of(int queue_index) const { return queue_index / device::kQueueKinds; }

  const Plan& plan_;
  const device::Devices& devices_;
  QueuePlan order_;
  std::vector<std::optional<device::Event>> events_;  // by node
  std::vector<QueueWorkspace> workspaces_;            // by queue
  std::vector<std::string> marks_;                    // by node; empty until it was launched
  struct Told {
    int queue_index, node;  // of the kernels, and one node that needs the status
    DeviceStatus status;
    device::Event ended;
  };
  FaultText fault_text_;
  std::unique_ptr<DeviceTimes> times_;      // null until a run is traced
  std::vector<Told> status_;                // of the devices with nodes that use them
  std::vector<Capturable> capturable_;      // by node; empty if nothing is captured
  size_t least_ = 0;                        // minimum number of nodes in a graph
  std::vector<device::Lookout*> lookouts_;  // of the nodes launched in this run
  std::vector<Stage> stages_;
};

}  // namespace anabranch
