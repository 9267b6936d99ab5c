#include "exec/device_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exec/queues.h"

namespace anabranch {
namespace {

int device_of(int queue_index) { return queue_index / device::kQueueKinds; }

}  // namespace

std::string name_of_queue(int queue_index) {
  static constexpr std::array<const char*, device::kQueueKinds> kNames{"compute", "up", "down"};  // as QueueKind
  return fmt::format("{} {}", Place::cuda(device_of(queue_index)).str(),
                     kNames[static_cast<size_t>(queue_index % device::kQueueKinds)]);
}

DeviceTimes::DeviceTimes(const Plan& plan, const device::Devices& devices)
    : plan_(plan), devices_(devices), spans_(static_cast<size_t>(plan.size())) {
  for (int i = 0; i < plan.size(); ++i) {
    if (plan.queue_index(i) == kHost) continue;
    const int device = device_of(plan.queue_index(i));
    spans_[static_cast<size_t>(i)].emplace(
        Span{device::Event(devices, device, true), device::Event(devices, device, true)});
    if (std::none_of(clocks_.begin(), clocks_.end(), [&](const Clock& c) { return c.device == device; })) {
      clocks_.push_back({device, device::Event(devices, device, true)});
    }
  }
}

uint64_t DeviceTimes::time_of(const device::Event& event) const {
  event.wait();
  return event.ns();
}

void DeviceTimes::begin() {
  for (auto& span : spans_) {
    if (span) span->open = span->closed = false;
  }
  for (Clock& clock : clocks_) {
    clock.event.record(devices_.queue(clock.device, device::QueueKind::kCompute));
    const uint64_t there = time_of(clock.event);
    clock.to_host = Trace::now_ns() - static_cast<int64_t>(there);
  }
}

void DeviceTimes::before(int node, ab_queue* queue) {
  Span& span = *spans_[static_cast<size_t>(node)];
  span.begin.record(queue);
  span.open = true;
}

void DeviceTimes::after(int node, ab_queue* queue) {
  Span& span = *spans_[static_cast<size_t>(node)];
  span.end.record(queue);
  span.closed = span.open;
}

void DeviceTimes::add_to(Trace& trace) const {
  for (int i = 0; i < plan_.size(); ++i) {
    const auto& span = spans_[static_cast<size_t>(i)];
    if (!span || !span->closed) continue;
    const int device = device_of(plan_.queue_index(i));
    const auto clock = std::find_if(clocks_.begin(), clocks_.end(), [&](const Clock& c) { return c.device == device; });
    const auto end = static_cast<int64_t>(time_of(span->end)), begin = static_cast<int64_t>(time_of(span->begin));
    trace.add_on_device(i, plan_.queue_index(i), begin + clock->to_host, end + clock->to_host);
  }
}

}  // namespace anabranch
