// State that a CompiledProgram keeps between runs: the replicas' variables and the plans created so far.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/futex_mutex.h"
#include "engine/binding.h"
#include "engine/compiled_program.h"
#include "engine/feed.h"
#include "engine/replica_values.h"

namespace anabranch {

struct CompiledProgram::Impl {
  // The calling thread's exclusive use of this program.
  class Exclusive {
   public:
    explicit Exclusive(Impl& impl);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;

   private:
    Impl& impl_;
  };

  Impl(ir::ProgramRef p, std::shared_ptr<Scope> s, CompileOptions o);

  // Replicas of one process update parameters and optimizer state once for all of them.
  bool shares_parameters() const { return options.data_parallel && options.replicas > 1 && !options.on_devices(); }
  std::set<std::string> shared_names() const;
  // Drops all plans if the program was edited, names of the scope refer to other values than before, or a flag that
  // plans depend on changed.
  void drop_old_plans();
  // In a child of fork(): a thread that used the program exists in the parent only, and its step had ended.
  void after_fork();
  void drop_plans();
  // The plans for these feeds and fetches, created if there are none.
  Binding& binding_for(const StepKey& key);
  // Runs one of them as many times as the strategy says and passes it to `use`; releases the memory of idle plans when
  // that is due.
  void run_step(Binding& binding, const Slices& slices, const std::function<void()>& between,
                const std::function<void(const Step&)>& use);
  void drop_temporaries();
  void begin_alike();

  ir::ProgramRef program;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  ReplicaValues values;
  std::list<Binding> bindings;  // most recently used first
  uint64_t generation = 0;      // increased when one is dropped: pointers to bindings are then invalid
  uint64_t version;
  uint64_t moves = 0, flags = 0;  // of `values` and Flags::plan_epoch(), when the plans were created
  uint32_t run_number = 0;
  int since_drop = 0;
  uint64_t alike = 0;  // rings_joined() when workers last synchronized their initial values
  uint64_t drawn_seed;
  Probe probe;
  PlanHook plan_hook = nullptr;
  std::atomic<uint32_t> forks;  // of the process, when this was created or last used
  mutable FutexMutex in_use;    // taken once per run: callers from several threads are serialized
  std::atomic<std::thread::id> user{};
};

}  // namespace anabranch
