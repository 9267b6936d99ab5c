#include "exec/queues.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "device/settle.h"
#include "exec/run.h"

namespace anabranch {

void Queues::follow_edges() {
  order_ = QueuePlan(plan_);
  events_.clear();
  events_.resize(static_cast<size_t>(plan_.size()));
  for (int i = 0; i < plan_.size(); ++i) {
    if (order_.records(i)) events_[i].emplace(devices_, device_of(plan_.queue_index(i)));
  }
  status_.clear();
  for (int i = 0; i < plan_.size(); ++i) {
    const bool known = std::any_of(status_.begin(), status_.end(),
                                   [&](const Told& t) { return t.queue_index == plan_.queue_index(i); });
    if (plan_.uses_status(i) && !known) add_status(plan_.queue_index(i), i);
  }
  while (static_cast<int>(workspaces_.size()) < plan_.queue_count()) {
    workspaces_.emplace_back(device_of(static_cast<int>(workspaces_.size())));
  }
  make_stages();
}

void Queues::add_status(int queue_index, int node) {
  status_.push_back(
      {queue_index, node, DeviceStatus(device_of(queue_index)), device::Event(devices_, device_of(queue_index))});
}

void Queues::begin(const Plan& plan) {
  lookouts_.clear();
  for (Told& t : status_) t.status.begin(devices_, queue_of(t.queue_index), plan.step(t.node));
}

void Queues::end() {
  for (Told& t : status_) {
    t.status.end(devices_, queue_of(t.queue_index));
    t.ended.record(queue_of(t.queue_index));
  }
}

Queues::Reported Queues::reported() const {
  for (const Told& t : status_) {
    const uint64_t word = t.status.fault();
    if (word == DeviceStatus::kNoFault) continue;
    const auto detail = static_cast<int64_t>(word << 24) >> 24;  // the layout is that of ops/device/element.h
    const int node = static_cast<int>(word >> 44);
    return {node, fault_text_(node, static_cast<int>(word >> 40 & 0xf), detail)};
  }
  return {};
}

const char* Queues::mark_of(int node, const Describe& describe) {
  marks_.resize(static_cast<size_t>(plan_.size()));
  std::string& mark = marks_[static_cast<size_t>(node)];
  if (mark.empty()) mark = describe(node);
  return mark.c_str();
}

void Queues::launch(Plan& plan, int i, const Describe* describe) {
  ab_queue* queue = queue_of(plan.queue_index(i));
  if (plan.is_dynamic(i)) plan.infer(i);
  for (const int before : order_.waits(i)) events_[before]->hold(queue);
  put(plan, i, queue, describe);
  if (order_.records(i)) events_[i]->record(queue);
}

void Queues::put(Plan& plan, int i, ab_queue* queue, const Describe* describe) {
  const int queue_index = plan.queue_index(i);
  if (describe && devices_.needs_marks()) {
    devices_.check(devices_.api().queue_mark(queue, mark_of(i, *describe)), "naming a node");
  }
  Plan::Node& node = plan.node(i);
  NodeStatus status;
  if (plan.uses_status(i)) [[unlikely]] {
    const auto told =
        std::find_if(status_.begin(), status_.end(), [&](const Told& t) { return t.queue_index == queue_index; });
    status = {told->status.fault_status(), told->status.step_status(), static_cast<uint32_t>(i)};
  }
  MeetingContext context({node.context, devices_, queue, &workspaces_[queue_index], status}, &lookouts_);
  node.kernel(context);
}

void Queues::capture(std::vector<Capturable> nodes, size_t least) {
  capturable_ = std::move(nodes);
  least_ = least;
  make_stages();
}

void Queues::make_stages() {
  stages_.clear();
  if (!capturable_.empty()) stages_ = anabranch::make_stages(plan_, order_, capturable_, least_);
}

void Queues::drop_graphs() {
  for (Stage& stage : stages_) stage.graph.drop();
}

void Queues::put_all(Plan& plan, const Stage& stage, ab_queue* queue, RunState& state, const Describe* describe) {
  for (const int i : stage.nodes) {
    state.at(i);
    put(plan, i, queue, describe);
  }
}

void Queues::launch(Plan& plan, Stage& stage, RunState& state, const Describe* describe) {
  ab_queue* queue = queue_of(stage.queue_index);
  QueueWorkspace& workspace = workspaces_[static_cast<size_t>(stage.queue_index)];
  for (const int before : stage.waits) events_[before]->hold(queue);
  StageGraph& graph = stage.graph;
  const auto capture_it = [&] {
    return graph.capture(devices_, device_of(stage.queue_index),
                         [&](ab_queue* own) { put_all(plan, stage, own, state, describe); });
  };
  if (!graph.fits(workspace.of(0))) {
    graph.drop();
    put_all(plan, stage, queue, state, describe);
    graph.record(stage.values, workspace.of(0));
  } else if (graph.captured() || capture_it()) {
    graph.launch(devices_, queue);
  } else {
    put_all(plan, stage, queue, state, describe);
  }
  for (const int i : stage.nodes) {
    if (order_.records(i)) events_[i]->record(queue);
  }
}

std::string Queues::explain_graphs() const {
  int graphs = 0, inside = 0, there = 0;
  int64_t launches = 0;
  std::map<std::string, int> apart;
  for (const Stage& stage : stages_) {
    const int nodes = stage.queue_index == kHost ? 0 : static_cast<int>(stage.nodes.size());
    there += nodes;
    launches += stage.graph.launches();
    if (stage.graph.captured()) {
      ++graphs;
      inside += nodes;
    } else if (stage.captured) {
      apart[stage.graph.refused().empty() ? "not captured yet" : "refused: " + stage.graph.refused()] += nodes;
    } else if (nodes == 1) {
      const char* why = capturable_[static_cast<size_t>(stage.nodes[0])].apart;
      ++apart[why ? why : "that have no neighbors"];
    }
  }
  if (there == 0) return "";
  std::string text = fmt::format("  nodes on devices: {} of {} in {}, launched {}", inside, there,
                                 counted(graphs, "graph"), counted(launches, "time"));
  std::vector<std::string> list;
  for (const auto& [why, nodes] : apart) list.push_back(fmt::format("{} {}", nodes, why));
  return text + (list.empty() ? "" : fmt::format("; apart: {}", fmt::join(list, ", "))) + "\n";
}

void Queues::wait_all() {
  for (const Told& t : status_) t.ended.wait(lookouts_);
  for (const int i : order_.last()) {
    if (i >= 0) events_[i]->wait(lookouts_);
  }
  lookouts_.clear();
}

void Queues::wait_for(int queue_index) const {
  const device::Event passed(devices_, device_of(queue_index));
  passed.record(queue_of(queue_index));
  passed.wait(lookouts_);
}

void Queues::abandon() noexcept {
  for (int d = 0; d < devices_.count(); ++d) device::settle(devices_, d, lookouts_);
  lookouts_.clear();
}

int64_t Queues::workspace_bytes() const {
  int64_t bytes = 0;
  for (const QueueWorkspace& w : workspaces_) bytes += static_cast<int64_t>(w.bytes());
  return bytes;
}

}  // namespace anabranch
