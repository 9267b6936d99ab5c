#include "exec/trace.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace anabranch {
namespace {

thread_local int node_at_work = -1;

}  // namespace

int64_t Trace::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int Trace::track() {
  static std::atomic<int> threads{0};
  thread_local const int mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

void Trace::clear() {
  used_.store(0, std::memory_order_relaxed);
  of_iterations_.store(0, std::memory_order_relaxed);
  of_chunks_.store(0, std::memory_order_relaxed);
  for (auto& ns : missed_help_) ns.store(0, std::memory_order_relaxed);
  std::fill(missed_.begin(), missed_.end(), MissedIterations{});
}

void Trace::add(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t iteration) {
  if (missed(node, kind, begin_ns, end_ns, iteration)) return;
  const int place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place >= capacity_) return;
  events_[place] = {node, track(), kind, begin_ns, end_ns, iteration};
}

void Trace::add_on_device(int node, int queue_index, int64_t begin_ns, int64_t end_ns) {
  const int place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place < capacity_) events_[place] = {node, -1 - queue_index, TraceEvent::kDevice, begin_ns, end_ns};
}

// Adds up events that do not fit.
bool Trace::missed(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t iteration) {
  if (kind == TraceEvent::kChunk) {
    if (of_chunks_.fetch_add(1, std::memory_order_relaxed) < for_chunks_) return false;
    const auto place = static_cast<size_t>(node);
    if (node >= 0 && place < missed_help_.size()) {
      missed_help_[place].fetch_add(end_ns - begin_ns, std::memory_order_relaxed);
    }
    return true;
  }
  if (iteration < 0 || of_iterations_.fetch_add(1, std::memory_order_relaxed) < for_iterations_) return false;
  const auto inner = static_cast<size_t>(node - first_inner_);
  if (inner < missed_.size()) missed_[inner].add(end_ns - begin_ns, end_ns);
  return true;
}

void MissedIterations::add(int64_t ns, int64_t end_ns) {
  min_ns = calls ? std::min(min_ns, ns) : ns;
  max_ns = std::max(max_ns, ns);
  if (!calls) first_end_ns = end_ns;
  ++calls;
  total_ns += ns;
}

std::span<const TraceEvent> Trace::events() const {
  return {events_.get(), static_cast<size_t>(std::min(used_.load(std::memory_order_acquire), capacity_))};
}

int Trace::dropped() const {
  return std::max(0, used_.load(std::memory_order_acquire) - capacity_) +
         std::max(0, of_iterations_.load() - for_iterations_) + std::max(0, of_chunks_.load() - for_chunks_);
}

void TraceSpan::open(int node, TraceEvent::Kind kind, int64_t iteration) {
  node_ = node;
  kind_ = kind;
  iteration_ = iteration;
  around_ = std::exchange(node_at_work, node);
  begin_ns_ = Trace::now_ns();
}

void TraceSpan::close() {
  trace_->add(node_, kind_, begin_ns_, Trace::now_ns(), iteration_);
  node_at_work = around_;
}

void TracedLoops::run(int64_t n, int64_t chunk, Body body, void* fn) {
  struct Loop {
    Body body;
    void* fn;
    Trace* trace;
    int node, track;
  } loop{body, fn, trace_, node_at_work, Trace::track()};
  const Body recorded = [](void* self, int64_t begin, int64_t end) {
    const Loop& l = *static_cast<Loop*>(self);
    const bool helping = Trace::track() != l.track;  // the caller's own chunks lie inside the node's event
    const int64_t begin_ns = helping ? Trace::now_ns() : 0;
    l.body(l.fn, begin, end);
    if (helping) l.trace->add(l.node, TraceEvent::kChunk, begin_ns, Trace::now_ns());
  };
  if (loops_) {
    loops_->run(n, chunk, recorded, &loop);
  } else {
    for (int64_t b = 0; b < n; b += chunk) body(fn, b, std::min(b + chunk, n));
  }
}

}  // namespace anabranch
