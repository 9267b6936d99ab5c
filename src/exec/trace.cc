#include "exec/trace.h"

#include <algorithm>
#include <chrono>

namespace anabranch {
namespace {

thread_local int node_at_work = -1;

}  // namespace

int64_t Trace::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int Trace::lane() {
  static std::atomic<int> threads{0};
  thread_local const int mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

void Trace::add(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns) {
  const int place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place >= capacity_) return;
  events_[place] = {node, lane(), kind, begin_ns, end_ns};
}

std::span<const TraceEvent> Trace::events() const {
  return {events_.get(), static_cast<size_t>(std::min(used_.load(std::memory_order_acquire), capacity_))};
}

int Trace::dropped() const { return std::max(0, used_.load(std::memory_order_acquire) - capacity_); }

void TraceSpan::open(int node, TraceEvent::Kind kind) {
  node_ = node;
  kind_ = kind;
  node_at_work = node;
  begin_ns_ = Trace::now_ns();
}

void TraceSpan::close() {
  trace_->add(node_, kind_, begin_ns_, Trace::now_ns());
  node_at_work = -1;
}

void TracedLoops::run(int64_t n, int64_t piece, Body body, void* fn) {
  struct Loop {
    Body body;
    void* fn;
    Trace* trace;
    int node, lane;
  } loop{body, fn, trace_, node_at_work, Trace::lane()};
  const Body recorded = [](void* self, int64_t begin, int64_t end) {
    const Loop& l = *static_cast<Loop*>(self);
    const bool helping = Trace::lane() != l.lane;  // the caller's own pieces lie inside the node's event
    const int64_t begin_ns = helping ? Trace::now_ns() : 0;
    l.body(l.fn, begin, end);
    if (helping) l.trace->add(l.node, TraceEvent::kPiece, begin_ns, Trace::now_ns());
  };
  if (loops_) {
    loops_->run(n, piece, recorded, &loop);
  } else {
    for (int64_t b = 0; b < n; b += piece) body(fn, b, std::min(b + piece, n));
  }
}

}  // namespace anabranch
