// A program bound to a scope and a number of replicas, ready to run. The plain Executor is one with one replica; there
// is no second way to run a program. Plans are created at the first run of a (feed names, fetch names, active replicas)
// combination and kept; new feed shapes only repeat shape inference. One caller at a time; several CompiledPrograms may
// share a scope and run one after another.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/scope.h"
#include "engine/memory_use.h"
#include "graph/build_strategy.h"
#include "ir/program.h"

namespace anabranch {

struct ExecutionStrategy {
  int num_threads = 0;                     // 0: the pool's own size; n: n real workers
  int num_iteration_per_drop_scope = 100;  // runs after which idle plans release their memory
  int num_iteration_per_run = 1;           // how many times one run() executes the plan
  bool dry_run = false;                    // everything but the kernels
};

struct CompileOptions {
  int replicas = 1;
  bool data_parallel = false;  // with_data_parallel: fetches have one slice per replica, even with one replica
  std::string loss_name;       // empty: no training
  std::vector<Place> places;   // by replica; empty: the CPU
  BuildStrategy build;
  ExecutionStrategy execution;
  // Replicas are on devices, and share no memory.
  bool on_devices() const {
    return std::any_of(places.begin(), places.end(), [](Place p) { return !p.on_host(); });
  }
  class CompiledProgram* share_vars_from = nullptr;  // uses its replicas' variables; must be data parallel
};

using FeedMap = std::vector<std::pair<std::string, Tensor>>;  // the memory is borrowed for the run

struct RunRequest {
  std::vector<FeedMap> feeds;  // one: a whole batch, split over the replicas; otherwise one per replica
  std::vector<std::string> fetch;
  bool read = false;  // the feeds are batches of a reader: each is that of one replica, and errors name the op `read`
  std::function<void()> between = {};  // called between iterations (num_iteration_per_run); may throw
};

// Values of one fetched variable, one per replica that has it. Owned copies.
using FetchedValue = std::variant<Tensor, TensorArray>;
using Fetched = std::vector<FetchedValue>;
// Joins the slices along axis 0 (LoD appended); InvalidArgument, which names the variable, if they do not fit.
FetchedValue merge_fetched(const Fetched& slices, const std::string& name);

class CompiledProgram {
 public:
  CompiledProgram(ir::ProgramRef program, std::shared_ptr<Scope> scope, CompileOptions options);
  ~CompiledProgram();

  std::vector<Fetched> run(const RunRequest& request);

  int replicas() const;
  // Text: passes applied and skipped, and the reasons; of the most recent plan.
  std::string explain() const;
  std::string graph_dot() const;
  // Makes the next run draw the random numbers of a program with the same state.
  struct RandomState {
    uint64_t seed;  // of random ops without a seed, if the program has none
    uint32_t runs;  // number of runs so far
  };
  RandomState random_state() const;
  void set_random_state(RandomState state);
  // Private state of all replicas except the first: variables that forward ops write.
  struct ReplicaState {
    std::string name;
    int replica;
    Tensor value;
  };
  std::vector<ReplicaState> replica_states() const;
  void set_replica_states(const std::vector<ReplicaState>& states);
  void drop_temporaries();  // releases the memory of everything that is not persistable
  int64_t temporary_bytes() const;
  std::vector<MemoryUse> memory() const;  // of the variables of all plans; memory shared by replicas is listed for each

  // For tests: called before every node of a run with the op's type, replica and node index; may throw.
  using Probe = std::function<void(const std::string& op_type, int replica, int node)>;
  void set_probe(Probe probe);
  // For tests: called when a run enters its plan, and after it has left it.
  using PlanHook = void (*)(bool entered);
  void set_plan_hook(PlanHook hook);

 private:
  friend class PreparedRun;
  struct Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace anabranch
