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

int Trace::lane() {
  static std::atomic<int> threads{0};
  thread_local const int mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

void Trace::clear() {
  used_.store(0, std::memory_order_relaxed);
  of_turns_.store(0, std::memory_order_relaxed);
  of_pieces_.store(0, std::memory_order_relaxed);
  for (auto& ns : missed_help_) ns.store(0, std::memory_order_relaxed);
  std::fill(missed_.begin(), missed_.end(), MissedTurns{});
}

void Trace::add(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t turn) {
  if (missed(node, kind, begin_ns, end_ns, turn)) return;
  const int place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place >= capacity_) return;
  events_[place] = {node, lane(), kind, begin_ns, end_ns, turn};
}

void Trace::add_on_device(int node, int lane, int64_t begin_ns, int64_t end_ns) {
  const int place = used_.fetch_add(1, std::memory_order_relaxed);
  if (place < capacity_) events_[place] = {node, -1 - lane, TraceEvent::kDevice, begin_ns, end_ns};
}

// Adds up events that do not fit.
bool Trace::missed(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t turn) {
  if (kind == TraceEvent::kPiece) {
    if (of_pieces_.fetch_add(1, std::memory_order_relaxed) < for_pieces_) return false;
    const auto place = static_cast<size_t>(node);
    if (node >= 0 && place < missed_help_.size()) {
      missed_help_[place].fetch_add(end_ns - begin_ns, std::memory_order_relaxed);
    }
    return true;
  }
  if (turn < 0 || of_turns_.fetch_add(1, std::memory_order_relaxed) < for_turns_) return false;
  const auto inner = static_cast<size_t>(node - first_inner_);
  if (inner < missed_.size()) missed_[inner].add(end_ns - begin_ns, end_ns);
  return true;
}

void MissedTurns::add(int64_t ns, int64_t end_ns) {
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
  return std::max(0, used_.load(std::memory_order_acquire) - capacity_) + std::max(0, of_turns_.load() - for_turns_) +
         std::max(0, of_pieces_.load() - for_pieces_);
}

void TraceSpan::open(int node, TraceEvent::Kind kind, int64_t turn) {
  node_ = node;
  kind_ = kind;
  turn_ = turn;
  around_ = std::exchange(node_at_work, node);
  begin_ns_ = Trace::now_ns();
}

void TraceSpan::close() {
  trace_->add(node_, kind_, begin_ns_, Trace::now_ns(), turn_);
  node_at_work = around_;
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
    const bool helping = Trace::lane() != l.lane;  // the caller's own chunks lie inside the node's event
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
