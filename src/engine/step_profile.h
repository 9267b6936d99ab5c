// A Step's data for the profiler: created at its first recorded run, so that a process which never profiles pays one
// test per run.
#pragma once
#include <memory>
#include <vector>

#include "engine/profiler.h"
#include "exec/lower.h"
#include "exec/trace.h"
#include "graph/graph.h"

namespace anabranch {

class StepProfile {
 public:
  StepProfile(const Graph& graph, Lowered& lowered);

  // One run, from entering the step to leaving it, whether it fails or not. trace() is null unless profiling is on.
  class Run {
   public:
    Run(std::unique_ptr<StepProfile>& slot, const Graph& graph, Lowered& lowered);
    ~Run();
    Run(const Run&) = delete;
    Trace* trace() const { return profile_ ? &profile_->trace_ : nullptr; }

   private:
    StepProfile* profile_ = nullptr;
    int64_t begin_ns_ = 0;
  };

  // Copying the fetched values after a run.
  class Fetching {
   public:
    explicit Fetching(const StepProfile* profile);
    ~Fetching();
    Fetching(const Fetching&) = delete;

   private:
    const StepProfile* profile_;
    int64_t begin_ns_ = 0;
  };

 private:
  ProfiledPlan describe() const;
  void begin();
  void end(int64_t begin_ns);
  void measure_work();

  const Graph& graph_;
  Lowered& lowered_;
  Trace trace_;
  std::vector<std::unique_ptr<TracedLoops>> loops_;  // one for each pool that the nodes use
  std::vector<Parallel*> own_loops_;                 // by node
  std::vector<OpWork> works_;
  uint64_t generation_ = 0;
  int plan_ = -1;
};

}  // namespace anabranch
