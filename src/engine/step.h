// One plan with what is needed to run it again and again: where feeds go, where fetches come from, which shapes it was
// laid out for.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/compiled_program.h"
#include "engine/feed.h"
#include "engine/memory_use.h"
#include "engine/replica_values.h"
#include "engine/step_profile.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
#include "exec/run.h"
#include "exec/thread_trial.h"
#include "graph/pass.h"
#include "graph/replicate.h"

namespace anabranch {

struct StepKey {
  std::vector<std::string> feeds, fetches;
  int active = 1;
  bool operator==(const StepKey&) const = default;
};

struct StepOptions {
  const ir::Program* program;
  const CompileOptions* compile;
  ReplicaValues* values;
  uint64_t seed;
};

class Step {
 public:
  Step(const StepKey& key, const StepOptions& options);

  // `feeds` by replica, in the order of the key; their memory is borrowed until release_feeds(). The fetched values
  // keep until then.
  struct Hooks {
    const CompiledProgram::Probe& probe;
    CompiledProgram::PlanHook plan;
  };
  void run(const Pieces& feeds, uint32_t number, const Hooks& hooks);
  void release_feeds();
  const std::vector<std::vector<Value*>>& fetched() const { return fetch_values_; }  // by fetch, then replica
  Fetched collect(size_t fetch) const;                                               // copies of one
  std::vector<Fetched> collect() const;                                              // and of all
  const StepProfile* profile() const { return profile_.get(); }                      // null: never profiled

  const StepKey& key() const { return key_; }
  std::string explain() const;
  std::string dot() const { return to_dot(graph_); }
  void drop_temporaries();
  int64_t temporary_bytes() const;
  void add_memory(std::vector<MemoryUse>* out) const;  // of its variables, and the size of the last batch

 private:
  struct FeedSlot {
    Value* value;
    bool keeps;   // it outlives the run, or some op writes it: the caller's memory must not be borrowed
    Shape shape;  // what the plan was laid out for
    DType dtype;
    LoDRef lod;
    bool laid_out = false;
  };
  struct Watched {  // a value outside of the plan: others may change it between runs
    Value* value;
    Form form;  // what the plan was laid out for
  };

  void make_graph(const StepOptions& options);
  void make_slots();
  std::set<int> changed_vars() const;
  Value* hold(std::shared_ptr<Value> value);
  int users_of(int var) const;           // replicas whose nodes touch it
  bool bind_feeds(const Pieces& feeds);  // true when shapes changed
  bool watched_changed();
  bool feed(const Pieces& feeds, Trace* trace);
  void lay_out();
  void weigh();
  void find_temporaries();
  void place_temporaries();
  bool may_run_parallel() const;
  void execute(uint32_t number, const Hooks& hooks, Trace* trace);
  bool asked_for_threads() const;
  void check_finite(int node) const;
  [[noreturn]] void report(Error error, int node) const;

  StepKey key_;
  CompileOptions compile_;
  ReplicaValues* values_;
  std::vector<std::shared_ptr<Value>> outside_;  // of the plan: they stay whatever becomes of their names
  Graph graph_;
  std::vector<PassReport> passes_;
  Lowered lowered_;
  std::unique_ptr<RunState> state_;
  Team* team_ = nullptr;
  std::vector<std::vector<FeedSlot>> feed_slots_;  // by replica, in the order of key_.feeds
  std::vector<std::vector<Value*>> fetch_values_;  // by fetch, then replica
  std::vector<bool> fetches_kept_;                 // a parameter or other state, which trainers may share
  std::vector<Watched> watched_;
  std::vector<Value*> written_;  // values of the user's scope that a run changes
  std::vector<int> numbered_;    // nodes whose kernels look at the number of the step: random ones, sub-blocks
  bool laid_out_ = false;
  ThreadTrial trial_;
  std::vector<Temporary> shareable_;
  MemoryPlan memory_;
  std::function<std::string(int)> describe_;
  std::unique_ptr<StepProfile> profile_;
};

}  // namespace anabranch
