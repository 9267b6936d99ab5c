// What a CompiledProgram keeps between runs: the replicas' variables and the plans made so far.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/turn_lock.h"
#include "engine/compiled_program.h"
#include "engine/feed.h"
#include "engine/in_scope.h"
#include "engine/replica_values.h"
#include "engine/step.h"

namespace anabranch {

struct CompiledProgram::Impl {
  // The calling thread's turn with this program.
  class Turn {
   public:
    explicit Turn(Impl& impl);
    ~Turn();
    Turn(const Turn&) = delete;

   private:
    Impl& impl_;
  };

  Impl(ir::ProgramRef p, std::shared_ptr<Scope> s, CompileOptions o);

  // Replicas of one process update parameters and optimizer state once for all of them.
  bool shares_parameters() const { return options.data_parallel && options.replicas > 1 && !options.on_devices(); }
  // By how much the declared rows of a fed variable are multiplied.
  int feed_devices() const { return options.data_parallel ? options.replicas : 1; }
  // Drops all plans when the program was edited, names of the scope mean other values than they did, or a flag that
  // plans follow was set.
  void drop_old_plans();
  // In a child of fork(): a turn that a thread of the parent had is over, unless its step was not.
  void after_fork();
  void drop_plans();
  // The plan for these feeds and fetches, made when there is none.
  Step& step_for(const StepKey& key);
  // Runs it as often as the strategy says and hands it to `use`; releases the memory of idle plans when that is due.
  void run_step(Step& step, const Pieces& pieces, const std::function<void()>& between,
                const std::function<void(const Step&)>& use);
  // Once, with its values where its plan has them, which stay there while *inside lives. The step that ran.
  Step* run_once(Step& step, const Pieces& pieces, uint32_t number, InScope* inside);
  void drop_temporaries();
  void begin_alike();

  ir::ProgramRef program;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  ReplicaValues values;
  std::list<Step> steps;    // the most recently looked up one first
  uint64_t generation = 0;  // raised when a plan goes: pointers to plans are old
  uint64_t version;
  uint64_t moves = 0, flags = 0;  // of `values` and Flags::plan_epoch(), when the plans were made
  uint32_t run_number = 0;
  int since_drop = 0;
  uint64_t alike = 0;  // rings_joined() when trainers last began alike
  uint64_t drawn_seed;
  Probe probe;
  PlanHook plan_hook = nullptr;
  std::atomic<uint32_t> forks;  // of the process, when this was made or last used
  mutable TurnLock in_use;      // taken once a run: callers from several threads take turns
  std::atomic<std::thread::id> user{};
};

}  // namespace anabranch
