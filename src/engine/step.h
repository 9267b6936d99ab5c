// A plan with everything that it takes to run it repeatedly: destinations of feeds, sources of fetches, and its layout.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/compiled_program.h"
#include "engine/feed_slots.h"
#include "engine/fetch_slots.h"
#include "engine/layout.h"
#include "engine/memory_use.h"
#include "engine/replica_values.h"
#include "engine/step_profile.h"
#include "exec/lower.h"
#include "exec/run.h"
#include "exec/thread_trial.h"
#include "graph/pass.h"

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
  std::string disable = {};  // the reason why passes that change ops are disabled; empty if they are enabled
};

class Step {
 public:
  Step(const StepKey& key, const StepOptions& options);
  Step(const Step&) = delete;

  struct Hooks {
    const CompiledProgram::Probe& probe;
    CompiledProgram::PlanHook plan;
  };
  // feeds: by replica, in the order of the key. Their memory is borrowed until release_feeds(), and the fetched values
  // are valid until then. If the result is not kReady, no kernel has run.
  Layout::Made run(const Slices& feeds, uint32_t number, const Hooks& hooks);
  bool feed(const Slices& feeds, Trace* trace = nullptr);  // true if shapes differ from those of the last run
  void release_feeds() { feeds_.release(); }
  const std::vector<std::vector<Value*>>& fetched() const { return fetches_.values(); }  // by fetch, then replica
  Fetched collect(size_t fetch) const { return fetches_.collect(fetch); }                // copies of one fetch
  std::vector<Fetched> collect() const;                                                  // and of all
  double mean(size_t fetch) const { return fetches_.mean(fetch); }
  const Tensor& tensor(size_t fetch) const { return fetches_.tensor(fetch); }  // of the first replica
  const StepProfile* profile() const { return profile_.get(); }                // null: never profiled

  const StepKey& key() const { return key_; }
  std::string explain() const;
  std::string dot() const { return to_dot(graph_); }
  Layout& layout() { return *layout_; }
  void add_memory(std::vector<MemoryUse>* out) const;  // the memory of its variables, and the size of the last batch

 private:
  // Returns the graph after all passes. near_misses: set by explain() only, else null.
  Graph make_graph(std::vector<PassReport>* passes, std::vector<std::string>* near_misses) const;
  Value* hold(std::shared_ptr<Value> value);
  void note_changes();
  Place needed_at(int v) const;
  void make_feed_slots();
  void add_fetch(const std::string& name);
  bool may_run_parallel() const;
  void execute(uint32_t number, const Hooks& hooks, Trace* trace);
  void execute_and_note(uint32_t number, const Hooks& hooks, Trace* trace);
  bool asked_for_threads() const;
  [[noreturn]] void fail(Error error) const;
  std::string explain_copies() const;
  std::string explain_near_misses() const;

  StepKey key_;
  const StepOptions options_;
  CompileOptions compile_;
  const uint64_t version_;  // of the program
  ReplicaValues* values_;
  std::vector<std::shared_ptr<Value>> outside_;  // variables of scopes, kept alive even if their names are erased
  Graph graph_;
  std::vector<PassReport> passes_;
  Lowered lowered_;
  std::unique_ptr<RunState> state_;
  ThreadPool* pool_ = nullptr;
  FeedSlots feeds_;
  FetchSlots fetches_;
  std::unique_ptr<Layout> layout_;
  std::vector<Value*> written_;  // values of the user's scope that a run changes
  std::vector<int> numbered_;    // nodes whose kernels use the step number or status: random ones, sub-blocks
  ThreadTrial trial_;
  std::function<std::string(int)> describe_;
  std::unique_ptr<StepProfile> profile_;
};

}  // namespace anabranch
