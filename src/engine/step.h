// One plan with everything to run it repeatedly: the destinations of feeds, the sources of fetches, and the shapes for
// which it was laid out.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/compiled_program.h"
#include "engine/feed_slots.h"
#include "engine/fetch_slots.h"
#include "engine/memory_use.h"
#include "engine/replica_values.h"
#include "engine/step_profile.h"
#include "exec/lower.h"
#include "exec/memory_plan.h"
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
  std::string disable = {};  // why passes that change ops are disabled; empty: they are not
};

class Step {
 public:
  Step(const StepKey& key, const StepOptions& options);

  // `feeds` by replica, in the order of the key; their memory is borrowed until release_feeds(). The fetched values are
  // valid until then.
  struct Hooks {
    const CompiledProgram::Probe& probe;
    CompiledProgram::PlanHook plan;
  };
  // Passes never change what is accepted: if nodes that they created refuse the shapes, before anything has run, the
  // same program runs without them. Returns the step that ran: this one, or the one without passes. Null: nothing has
  // run, because a value is not where the plan needs it; call move_into_place() and run again.
  Step* run(const Slices& feeds, uint32_t number, const Hooks& hooks);
  void move_into_place();  // moves persistent values to where the plan needs them, while no other thread uses them
  void release_feeds();
  const std::vector<std::vector<Value*>>& fetched() const { return fetches_.values(); }  // by fetch, then replica
  Fetched collect(size_t fetch) const { return fetches_.collect(fetch); }                // copies of one fetch
  std::vector<Fetched> collect() const;                                                  // and of all
  const StepProfile* profile() const { return profile_.get(); }                          // null: never profiled

  const StepKey& key() const { return key_; }
  std::string explain() const;
  std::string dot() const { return disabled_ ? plain_->dot() : to_dot(graph_); }
  void drop_temporaries();
  void drop_idle();  // releases temporaries of the variant (with or without passes) that did not run last
  int64_t temporary_bytes() const;
  void add_memory(std::vector<MemoryUse>* out) const;  // of its variables, and the size of the last batch

 private:
  struct Watched {  // a value outside of the plan: others may change it between runs
    Value* value;
    Form form;  // for which the plan was laid out
  };

  // The graph after all passes. near_misses: null unless explain() asks for them.
  Graph make_graph(std::vector<PassReport>* passes, std::vector<std::string>* near_misses) const;
  Value* hold(std::shared_ptr<Value> value);
  void note_outside();
  Place needed_at(int v) const;
  void make_feed_slots();
  void add_fetch(const std::string& name);
  bool watched_changed();
  bool unwatched_moved() const;
  bool feed(const Slices& feeds, Trace* trace);  // true if shapes differ from those of the last run
  bool stays_disabled(const Slices& feeds);
  bool lay_out();  // false: a value is at another place
  void place_temporaries(bool at_once);
  void check_declared() const;
  void drop_own_temporaries();
  void disable_passes(const Error& refusal);
  void report_disabled();
  Step* run_plain(const Slices& feeds, uint32_t number, const Hooks& hooks);
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
  std::vector<std::shared_ptr<Value>> outside_;  // of the plan: they stay alive even if their names are erased
  Graph graph_;
  std::vector<PassReport> passes_;
  Lowered lowered_;
  std::unique_ptr<RunState> state_;
  ThreadPool* pool_ = nullptr;
  FeedSlots feeds_;
  FetchSlots fetches_;
  std::vector<Watched> watched_;
  std::vector<int> declared_;    // outside variables that must match their declaration, because passes rely on it
  std::vector<Value*> written_;  // values of the user's scope that a run changes
  std::vector<int> numbered_;    // nodes whose kernels use the step number or status: random ones, sub-blocks
  std::vector<std::pair<const Value*, Place>> unwatched_;  // other outside values, and their places in the plan
  bool laid_out_ = false;
  ThreadTrial trial_;
  std::vector<Temporary> shareable_;
  MemoryPlan memory_;
  std::function<std::string(int)> describe_;
  std::unique_ptr<StepProfile> profile_;
  std::unique_ptr<Step> plain_;  // without passes that change ops; created on demand
  bool disabled_ = false;        // the shapes of the last run are for plain_
  bool reported_ = false;        // that the CPU runs a plan meant for devices
};

}  // namespace anabranch
