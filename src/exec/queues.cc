#include "exec/queues.h"

#include <algorithm>

namespace anabranch {

void Queues::follow_edges() {
  order_ = QueuePlan(plan_);
  events_.clear();
  events_.resize(static_cast<size_t>(plan_.size()));
  for (int i = 0; i < plan_.size(); ++i) {
    if (order_.records(i)) events_[i].emplace(devices_, device_of(plan_.lane(i)));
  }
  words_.clear();
  for (int i = 0; i < plan_.size(); ++i) {
    const bool known =
        std::any_of(words_.begin(), words_.end(), [&](const Told& t) { return t.lane == plan_.lane(i); });
    if (plan_.uses_words(i) && !known) add_words(plan_.lane(i), i);
  }
  while (static_cast<int>(workspaces_.size()) < plan_.lanes()) {
    workspaces_.emplace_back(device_of(static_cast<int>(workspaces_.size())));
  }
}

void Queues::add_words(int lane, int node) {
  words_.push_back({lane, node, DeviceWords(device_of(lane)), device::Event(devices_, device_of(lane))});
}

void Queues::begin(const Plan& plan) {
  for (Told& t : words_) t.words.begin(devices_, queue_of(t.lane), plan.step(t.node));
}

void Queues::end() {
  for (Told& t : words_) {
    t.words.end(devices_, queue_of(t.lane));
    t.ended.record(queue_of(t.lane));
  }
}

Queues::Reported Queues::reported() const {
  for (const Told& t : words_) {
    const uint64_t word = t.words.fault();
    if (word == DeviceWords::kNoFault) continue;
    const auto detail = static_cast<int64_t>(word << 24) >> 24;  // as ops/device/element.h puts it together
    const int node = static_cast<int>(word >> 44);
    return {node, fault_text_(node, static_cast<int>(word >> 40 & 0xf), detail)};
  }
  return {};
}

const char* Queues::mark_of(int node, const std::function<std::string(int)>& describe) {
  marks_.resize(static_cast<size_t>(plan_.size()));
  std::string& mark = marks_[static_cast<size_t>(node)];
  if (mark.empty()) mark = describe(node);
  return mark.c_str();
}

void Queues::launch(Plan& plan, int i, const std::function<std::string(int)>* describe) {
  const int lane = plan.lane(i);
  ab_queue* queue = queue_of(lane);
  if (plan.is_dynamic(i)) plan.infer(i);
  for (const int before : order_.waits(i)) events_[before]->hold(queue);
  if (describe && devices_.wants_marks()) {
    devices_.check(devices_.api().queue_mark(queue, mark_of(i, *describe)), "naming a node");
  }
  Plan::Node& node = plan.node(i);
  NodeWords words;
  if (plan.uses_words(i)) [[unlikely]] {
    const auto told = std::find_if(words_.begin(), words_.end(), [&](const Told& t) { return t.lane == lane; });
    words = {told->words.fault_word(), told->words.step_word(), static_cast<uint32_t>(i)};
  }
  DeviceContext context(node.context, devices_, queue, &workspaces_[lane], words);
  node.kernel(context);
  if (order_.records(i)) events_[i]->record(queue);
}

void Queues::wait_all() {
  for (const Told& t : words_) t.ended.wait();
  for (const int i : order_.last()) {
    if (i >= 0) events_[i]->wait();
  }
}

void Queues::wait_for(int lane) const {
  const device::Event passed(devices_, device_of(lane));
  passed.record(queue_of(lane));
  passed.wait();
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
