// What ran on which thread and when: one fixed array of events, filled while a plan runs. A run without a Trace pays
// one pointer test a node. Writing takes no lock and no memory; what does not fit is counted and dropped.
// add() may be called from any thread; clear() and events() only between runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/parallel.h"

namespace anabranch {

struct TraceEvent {
  enum Kind : int8_t { kNode, kPiece, kRun, kFeed, kShapes, kFetch };
  int32_t node = -1;  // of the plan; -1 for what the engine does around it
  int32_t lane = 0;   // the thread
  Kind kind = kNode;  // kPiece: part of a node's loop, done for another thread; kRun: the whole run
  int64_t begin_ns = 0, end_ns = 0;
};

class Trace {
 public:
  explicit Trace(int capacity) : events_(std::make_unique<TraceEvent[]>(capacity)), capacity_(capacity) {}

  void clear() { used_.store(0, std::memory_order_relaxed); }
  void add(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns);
  std::span<const TraceEvent> events() const;
  int dropped() const;

  static int64_t now_ns();
  static int lane();  // a small number of the calling thread, the same for as long as it lives

 private:
  std::unique_ptr<TraceEvent[]> events_;
  int capacity_;
  std::atomic<int> used_{0};
};

// Records its own life; nothing when `trace` is null. While a node is recorded its loops know it (see TracedLoops).
class TraceSpan {
 public:
  TraceSpan(Trace* trace, int node, TraceEvent::Kind kind = TraceEvent::kNode) : trace_(trace) {
    if (trace_) [[unlikely]]
      open(node, kind);
  }
  ~TraceSpan() {
    if (trace_) [[unlikely]]
      close();
  }
  TraceSpan(const TraceSpan&) = delete;

 private:
  void open(int node, TraceEvent::Kind kind);
  void close();

  Trace* trace_;
  int node_ = -1;
  TraceEvent::Kind kind_ = TraceEvent::kNode;
  int64_t begin_ns_ = 0;
};

// Stands between the kernels of a traced run and the pool: pieces of a loop that other threads take are recorded.
class TracedLoops final : public Parallel {
 public:
  TracedLoops(Parallel* loops, Trace* trace) : loops_(loops), trace_(trace) {}
  void run(int64_t n, int64_t piece, Body body, void* fn) override;
  Parallel* around() const { return loops_; }

 private:
  Parallel* loops_;
  Trace* trace_;
};

}  // namespace anabranch
