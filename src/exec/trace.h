// Records which node ran on which thread and when: one fixed array of events, filled while a plan runs. A run without a
// Trace pays one pointer test per node. Recording takes no lock and allocates nothing; events that do not fit are
// counted and dropped. add() may be called from any thread; clear() and events() only between runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"

namespace anabranch {

struct TraceEvent {
  enum Kind : int8_t { kNode, kChunk, kRun, kFeed, kShapes, kFetch, kDevice };
  int32_t node = -1;  // of the plan; -1 for the engine's own work
  int32_t track = 0;  // the thread; -1 - queue_index for a device's queue
  Kind kind = kNode;  // kChunk: part of a node's loop, run by another thread; kRun: the whole run;
                      // kDevice: the node's execution on its device, while kNode is its launch
  int64_t begin_ns = 0, end_ns = 0;
  int64_t iteration = -1;  // of the op of a sub-block: the iteration; its node numbers follow those of the plan
};

// Sum over the events of an op of a sub-block for which the trace had no room.
struct MissedIterations {
  int64_t calls = 0, total_ns = 0, min_ns = 0, max_ns = 0, first_end_ns = 0;
  void add(int64_t ns, int64_t end_ns);
};

// Separate room for each kind of event, so that neither a long loop nor many chunks displace the nodes. Events that do
// not fit are added up per node.
struct TraceRoom {
  int nodes, chunks, iterations;
  size_t plan_nodes, inner;  // nodes of the plan, followed by the ops of sub-blocks
};

class Trace {
 public:
  // For any events, without sums of those that do not fit.
  explicit Trace(int capacity)
      : events_(std::make_unique<TraceEvent[]>(capacity)), capacity_(capacity), for_chunks_(capacity) {}
  explicit Trace(const TraceRoom& room) : Trace(room.nodes + room.chunks + room.iterations) {
    for_chunks_ = room.chunks;
    for_iterations_ = room.iterations;
    first_inner_ = static_cast<int>(room.plan_nodes);
    missed_.resize(room.inner);
    missed_help_ = std::vector<std::atomic<int64_t>>(room.plan_nodes + room.inner);
  }

  void clear();
  void add(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t iteration = -1);
  void add_on_device(int node, int queue_index, int64_t begin_ns, int64_t end_ns);  // on the host's clock
  std::span<const TraceEvent> events() const;
  int dropped() const;
  const std::vector<MissedIterations>& missed() const { return missed_; }
  // Per node, the sum of the chunks that did not fit.
  const std::vector<std::atomic<int64_t>>& missed_help() const { return missed_help_; }
  int first_inner() const { return first_inner_; }

  static int64_t now_ns();
  static int track();  // a small number of the calling thread, constant for its lifetime

 private:
  std::unique_ptr<TraceEvent[]> events_;
  bool missed(int node, TraceEvent::Kind kind, int64_t begin_ns, int64_t end_ns, int64_t iteration);

  int capacity_, for_chunks_, for_iterations_ = 0, first_inner_ = 0;
  std::vector<MissedIterations> missed_;  // an op is run by one thread at a time
  std::vector<std::atomic<int64_t>> missed_help_;
  std::atomic<int> used_{0}, of_iterations_{0}, of_chunks_{0};
};

// Records its own lifetime; nothing if `trace` is null. While a node is recorded its loops know it (see TracedLoops).
class TraceSpan {
 public:
  TraceSpan(Trace* trace, int node, TraceEvent::Kind kind = TraceEvent::kNode, int64_t iteration = -1) : trace_(trace) {
    if (trace_) [[unlikely]]
      open(node, kind, iteration);
  }
  ~TraceSpan() {
    if (trace_) [[unlikely]]
      close();
  }
  TraceSpan(const TraceSpan&) = delete;

 private:
  void open(int node, TraceEvent::Kind kind, int64_t iteration);
  void close();

  Trace* trace_;
  int node_ = -1, around_ = -1;
  TraceEvent::Kind kind_ = TraceEvent::kNode;
  int64_t begin_ns_ = 0, iteration_ = -1;
};

// Between the kernels of a traced run and the pool: records the chunks of a loop that other threads run.
class TracedLoops final : public Parallel {
 public:
  TracedLoops(Parallel* loops, Trace* trace) : loops_(loops), trace_(trace) {}
  void run(int64_t n, int64_t chunk, Body body, void* fn) override;
  Parallel* around() const { return loops_; }

 private:
  Parallel* loops_;
  Trace* trace_;
};

}  // namespace anabranch
