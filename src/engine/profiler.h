// Measures every run of every compiled program of the process while it is on: how many times each op ran, for how long,
// on which thread. When off, it costs one branch per run. Statistics are kept per plan node, so a million runs need no
// more memory than one; single events are kept up to a limit. Any thread; results are copies.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/op_work.h"
#include "exec/trace.h"

namespace anabranch {

// Measurements of one node, or of one of the engine's own phases.
struct Measured {
  int64_t calls = 0, total_ns = 0, min_ns = 0, max_ns = 0;
  int64_t helped_ns = 0;     // time other threads spent in its loops
  int64_t first_end_ns = 0;  // 0: never ran
  double flops = 0, bytes = 0;

  void add(int64_t ns, int64_t end_ns, const OpWork& work);
  void add(const Measured& other);
};

struct ProfiledNode {
  std::string type, place;  // "mul"; "#12 mul -> fc_0.tmp_0 ... made at train.py:41"
  int replica = 0;
  bool inner = false;  // in a sub-block: its time is part of that of the node that runs the block
  OpWork work;         // of one call, from the shapes of the last run
  Measured measured;   // of a node on a device: its launches
  Measured on_device;  // its execution on the device
};

struct ProfiledPlan {
  std::vector<ProfiledNode> nodes;               // in a legal order of execution
  std::vector<int> successors, first_successor;  // of node i: [first_successor[i], first_successor[i + 1])
  int64_t runs = 0, run_ns = 0;
  int64_t computing_ns = 0;      // part of run_ns with at least one node running
  int64_t on_devices_ns = 0;     // with at least one node running on a device
  Measured feed, shapes, fetch;  // the engine's own phases

  // The critical path: the chain of nodes that no number of threads could shorten, with their mean times.
  std::vector<std::pair<int, int64_t>> critical_path() const;
};

struct ProfiledEvent {
  int plan;
  TraceEvent event;
};

struct Profile {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t wall_clock_offset_ns = 0;  // offset to nanoseconds since 1970
  std::vector<ProfiledPlan> plans;
  std::vector<ProfiledEvent> events;
  int64_t dropped_events = 0;
};

class Profiler {
 public:
  static constexpr int64_t kMaxEvents = 1 << 20;

  static Profiler& instance();
  static bool on() { return on_.load(std::memory_order_relaxed); }

  void start();  // does nothing if it is on
  void stop();   // measurements stay until reset() or the next start()
  void reset();  // discards the measurements
  Profile snapshot() const;

  // For Step: plans are created again after a reset, which increases the generation.
  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }
  int add_plan(ProfiledPlan plan);
  // Events of one run of a plan; `works` by node. Ignored if the generation is outdated.
  void add_run(uint64_t generation, int plan, const Trace& trace, const std::vector<OpWork>& works);
  void add_fetch(uint64_t generation, int plan, const TraceEvent& event);

 private:
  void keep(int plan, const TraceEvent& event);

  inline static std::atomic<bool> on_{false};

  mutable std::mutex mutex_;
  std::atomic<uint64_t> generation_{1};
  Profile profile_;
};

}  // namespace anabranch
