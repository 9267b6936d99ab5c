#include "engine/profiler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace anabranch {
namespace {

// Time covered by at least one of the intervals.
int64_t covered_ns(std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t sum = 0, until = 0;
  for (const auto& [begin, end] : intervals) {
    sum += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

}  // namespace

void Measured::add(int64_t ns, int64_t end_ns, const OpWork& work) {
  min_ns = calls ? std::min(min_ns, ns) : ns;
  max_ns = std::max(max_ns, ns);
  if (calls++ == 0) first_end_ns = end_ns;
  total_ns += ns;
  flops += work.flops;
  bytes += work.bytes;
}

void Measured::add(const Measured& o) {
  if (o.calls == 0) return;
  min_ns = calls ? std::min(min_ns, o.min_ns) : o.min_ns;
  max_ns = std::max(max_ns, o.max_ns);
  first_end_ns = calls ? std::min(first_end_ns, o.first_end_ns) : o.first_end_ns;
  calls += o.calls;
  total_ns += o.total_ns;
  helped_ns += o.helped_ns;
  flops += o.flops;
  bytes += o.bytes;
}

std::vector<std::pair<int, int64_t>> ProfiledPlan::critical_path() const {
  const int n = static_cast<int>(nodes.size());
  std::vector<int64_t> mean(n), until(n);
  std::vector<int> before(n, -1);
  int last = -1;
  for (int i = 0; i < n; ++i) {
    const Measured& m = nodes[i].on_device.calls ? nodes[i].on_device : nodes[i].measured;
    mean[i] = m.calls && !nodes[i].inner ? m.total_ns / m.calls : 0;
    until[i] += mean[i];
    if (last < 0 || until[i] > until[last]) last = i;
    for (int e = first_successor[i]; e < first_successor[i + 1]; ++e) {
      const int next = successors[e];
      if (before[next] >= 0 && until[i] <= until[next]) continue;
      until[next] = until[i];
      before[next] = i;
    }
  }
  std::vector<std::pair<int, int64_t>> path;
  for (int i = last; i >= 0; i = before[i]) path.emplace_back(i, mean[i]);
  std::reverse(path.begin(), path.end());
  return path;
}

Profiler& Profiler::instance() {
  static auto& profiler = *new Profiler();  // never destroyed: programs may run while the process exits
  return profiler;
}

void Profiler::start() {
  const std::lock_guard lock(mutex_);
  if (on()) return;
  const auto since_1970 =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  profile_ = {};
  generation_.fetch_add(1);
  profile_.begin_ns = Trace::now_ns();
  profile_.wall_clock_offset_ns = since_1970 - profile_.begin_ns;
  on_.store(true);
}

void Profiler::stop() {
  const std::lock_guard lock(mutex_);
  if (on()) profile_.end_ns = Trace::now_ns();
  on_.store(false);
}

void Profiler::reset() {
  const std::lock_guard lock(mutex_);
  const int64_t offset = profile_.wall_clock_offset_ns;
  profile_ = {};
  profile_.wall_clock_offset_ns = offset;
  profile_.begin_ns = profile_.end_ns = Trace::now_ns();
  generation_.fetch_add(1);
}

Profile Profiler::snapshot() const {
  const std::lock_guard lock(mutex_);
  Profile copy = profile_;
  if (on()) copy.end_ns = Trace::now_ns();
  return copy;
}

int Profiler::add_plan(ProfiledPlan plan) {
  const std::lock_guard lock(mutex_);
  profile_.plans.push_back(std::move(plan));
  return static_cast<int>(profile_.plans.size()) - 1;
}

void Profiler::keep(int plan, const TraceEvent& event) {
  if (static_cast<int64_t>(profile_.events.size()) < kMaxEvents) {
    profile_.events.push_back({plan, event});
  } else {
    ++profile_.dropped_events;
  }
}

void Profiler::add_run(uint64_t generation, int plan, const Trace& trace, const std::vector<OpWork>& works) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_.load()) return;
  ProfiledPlan& p = profile_.plans[plan];
  std::vector<std::pair<int64_t, int64_t>> busy, on_devices;
  for (const TraceEvent& e : trace.events()) {
    const int64_t ns = e.end_ns - e.begin_ns;
    switch (e.kind) {
      case TraceEvent::kNode:
        p.nodes[e.node].work = works[e.node];
        p.nodes[e.node].measured.add(ns, e.end_ns, works[e.node]);
        if (e.iteration < 0) busy.emplace_back(e.begin_ns, e.end_ns);
        break;
      case TraceEvent::kChunk:
        if (e.node >= 0) p.nodes[e.node].measured.helped_ns += ns;
        break;
      case TraceEvent::kDevice:
        p.nodes[e.node].on_device.add(ns, e.end_ns, works[e.node]);
        on_devices.emplace_back(e.begin_ns, e.end_ns);
        break;
      case TraceEvent::kRun:
        ++p.runs;
        p.run_ns += ns;
        break;
      case TraceEvent::kFeed: p.feed.add(ns, e.end_ns, {}); break;
      case TraceEvent::kShapes: p.shapes.add(ns, e.end_ns, {}); break;
      case TraceEvent::kFetch: p.fetch.add(ns, e.end_ns, {}); break;
    }
    keep(plan, e);
  }
  for (size_t i = 0; i < trace.missed().size(); ++i) {
    const MissedIterations& m = trace.missed()[i];
    p.nodes[static_cast<size_t>(trace.first_inner()) + i].measured.add(
        Measured{m.calls, m.total_ns, m.min_ns, m.max_ns, 0, m.first_end_ns, 0, 0});
  }
  for (size_t i = 0; i < trace.missed_help().size(); ++i)
    p.nodes[i].measured.helped_ns += trace.missed_help()[i].load();
  busy.insert(busy.end(), on_devices.begin(), on_devices.end());
  p.computing_ns += covered_ns(std::move(busy));
  p.on_devices_ns += covered_ns(std::move(on_devices));
  profile_.dropped_events += trace.dropped();
}

void Profiler::add_fetch(uint64_t generation, int plan, const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_.load()) return;
  profile_.plans[plan].fetch.add(event.end_ns - event.begin_ns, event.end_ns, {});
  keep(plan, event);
}

}  // namespace anabranch
