#include "engine/compiled_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/counted.h"
#include "base/flags.h"
#include "base/fork.h"
#include "comm/group.h"
#include "device/devices.h"
#include "engine/compiled_program_impl.h"
#include "engine/prepared_run.h"
#include "engine/ring_values.h"
#include "graph/ownership.h"
#include "graph/trainers.h"
#include "ir/well_formed.h"

namespace anabranch {
namespace {

// Seed of random ops without one: different for each compiled program of each process.
uint64_t fresh_seed() {
  static std::atomic<uint64_t> drawn{0};
  static const uint64_t of_process = [] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) ^ device();
  }();
  return of_process + 0x9e3779b97f4a7c15u * ++drawn;
}

void check_options(const CompileOptions& o) {
  constexpr int kMaxReplicas = 4096;
  AB_CHECK(o.replicas >= 1 && o.replicas <= kMaxReplicas, InvalidArgument,
           "the number of replicas must be from 1 to {}, got {}", kMaxReplicas, o.replicas);
  AB_CHECK(o.execution.num_iteration_per_drop_scope >= 1, InvalidArgument,
           "num_iteration_per_drop_scope must be at least 1, got {}", o.execution.num_iteration_per_drop_scope);
  AB_CHECK(o.execution.num_iteration_per_run >= 1, InvalidArgument, "num_iteration_per_run must be at least 1, got {}",
           o.execution.num_iteration_per_run);
  AB_CHECK(o.build.trainer_id >= 0 && o.build.trainer_id < o.build.num_trainers, InvalidArgument,
           "trainer_id is {}, num_trainers is {}", o.build.trainer_id, o.build.num_trainers);
  AB_CHECK(
      !o.build.async_mode || o.replicas == 1 || !o.on_devices(), Unsupported,
      "async_mode: replicas on devices do not train independently, got {} places; set it to False, or use CPUPlace",
      o.replicas);
}

}  // namespace

CompiledProgram::Impl::Exclusive::Exclusive(Impl& impl) : impl_(impl) {
  AB_CHECK(impl.user.load() != std::this_thread::get_id(), Unsupported,
           "a compiled program is used while it runs, from inside its own run");
  if (impl.forks.load(std::memory_order_relaxed) != anabranch::forks()) [[unlikely]]
    impl.after_fork();
  // The owner of that program may be waiting for the run that this is part of.
  if (RunGate::inside_run()) {
    AB_CHECK(
        impl.in_use.try_lock(), Unavailable,
        "another thread is running this program, and code inside a run, such as a py_func, cannot wait for it; compile "
        "the program again for this thread");
  } else {
    impl.in_use.lock();
  }
  impl.user = std::this_thread::get_id();
}

CompiledProgram::Impl::Exclusive::~Exclusive() {
  impl_.user = std::thread::id();
  impl_.in_use.unlock();
}

CompiledProgram::Impl::Impl(ir::ProgramRef p, std::shared_ptr<Scope> s, CompileOptions o)
    : program(std::move(p)),
      scope(std::move(s)),
      options(std::move(o)),
      values(scope, options.replicas, shared_names()),
      version(program->version()),
      drawn_seed(fresh_seed()),
      forks(anabranch::forks()) {
  check_options(options);
  if (options.share_vars_from) values.borrow_from(&options.share_vars_from->impl_->values);
}

std::set<std::string> CompiledProgram::Impl::shared_names() const {
  if (!shares_parameters()) return {};
  return shared_persistables(*program, replicas_are_independent(*program, options.build, options.replicas));
}

void CompiledProgram::Impl::after_fork() {
  AB_CHECK(!in_use.held() || scope->gate().was_quiet_at_fork(), Unavailable,
           "the process was forked while another thread was in the middle of a step of this program: compile the "
           "program again in the child and load its variables, because the step may have changed some of them");
  in_use.reset();
  user = std::thread::id();
  forks = anabranch::forks();
}

void CompiledProgram::Impl::drop_old_plans() {
  const uint64_t now = values.moves(), flags_now = Flags::plan_epoch() + comm::rings_joined();
  if (program->version() == version && now == moves && flags_now == flags) return;
  drop_plans();
  version = program->version();
  moves = now;
  flags = flags_now;
}

void CompiledProgram::Impl::drop_plans() {
  bindings.clear();
  ++generation;
}

// Workers of a ring start with the values of the first one.
void CompiledProgram::Impl::begin_alike() {
  if (alike != 0 && alike == comm::rings_joined()) return;
  const auto group = comm::ring(0);
  AB_CHECK(group->size() == options.build.num_trainers && group->rank() == options.build.trainer_id, InvalidArgument,
           "num_trainers is {} and trainer_id {}, but this process is rank {} of {}", options.build.num_trainers,
           options.build.trainer_id, group->rank(), group->size());
  if (!options.share_vars_from) share_first_values(*program, values, *group);
  alike = comm::rings_joined();
}

Binding& CompiledProgram::Impl::binding_for(const StepKey& key) {
  drop_old_plans();
  const auto it = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.key() == key; });
  if (it != bindings.end()) {
    bindings.splice(bindings.begin(), bindings, it);
    return bindings.front();
  }
  const uint64_t seed = program->random_seed ? static_cast<uint64_t>(program->random_seed) : drawn_seed;
  ir::check_well_formed(*program);
  bindings.emplace_front(key, StepOptions{program.get(), &options, &values, seed});
  if (static_cast<int64_t>(bindings.size()) > std::max<int64_t>(1, Flags::plan_cache_size())) {
    bindings.pop_back();
    ++generation;
  }
  return bindings.front();
}

void CompiledProgram::Impl::run_step(Binding& binding, const Slices& slices, const std::function<void()>& between,
                                     const std::function<void(const Step&)>& use) {
  struct Release {
    Binding& binding;
    ~Release() {
      binding.each([](Step& step) { step.release_feeds(); });
    }
  } release{binding};
  const Step* ran = nullptr;
  InScope inside(*scope, options.share_vars_from ? options.share_vars_from->impl_->scope.get() : nullptr);
  for (int i = 0; !ran || i < options.execution.num_iteration_per_run; ++i) {
    inside.leave();
    if (i > 0 && between) between();
    if (options.data_parallel && options.build.num_trainers > 1) begin_alike();
    inside.enter();
    ran = &binding.run(slices, run_number++, {probe, plan_hook}, inside);
  }
  if (!device::Devices::opened()) inside.leave();  // otherwise another thread may move fetched values to another place
  {
    const StepProfile::Fetching fetching(ran->profile());
    use(*ran);
  }
  inside.leave();
  // The next run reuses the memory of temporaries, so only idle plans hold more than is needed.
  if (++since_drop < options.execution.num_iteration_per_drop_scope) return;
  for (Binding& b : bindings) {
    if (&b != &binding) {
      b.each([](Step& step) { step.layout().drop(); });
    } else if (Step* idle = b.idle()) {
      idle->layout().drop();
    }
  }
  since_drop = 0;
}

void CompiledProgram::Impl::drop_temporaries() {
  for (Binding& b : bindings) b.each([](Step& step) { step.layout().drop(); });
  since_drop = 0;
}

CompiledProgram::CompiledProgram(ir::ProgramRef program, std::shared_ptr<Scope> scope, CompileOptions options)
    : impl_(std::make_unique<Impl>(std::move(program), std::move(scope), std::move(options))) {}

CompiledProgram::~CompiledProgram() = default;

std::vector<Fetched> CompiledProgram::run(const RunRequest& request) {
  std::vector<std::string> names;
  Slices batches;
  for (FeedMap feed : request.feeds) {
    // Names that the program does not have are ignored: Fluid's users feed several programs from one dict.
    std::erase_if(feed, [&](const auto& fed) { return !impl_->program->global_block().find_var(fed.first); });
    std::sort(feed.begin(), feed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> fed;
    std::vector<Tensor>& batch = batches.emplace_back();
    for (auto& [name, tensor] : feed) {
      fed.push_back(name);
      batch.push_back(std::move(tensor));
    }
    if (batches.size() == 1) names = fed;
    AB_CHECK(fed == names, InvalidArgument, "the replicas are fed different variables: {} and {}",
             fmt::join(names, ", "), fmt::join(fed, ", "));
  }
  PreparedRun prepared(*this, names, request.fetch, request.read);
  std::vector<Fetched> out;
  const auto use = [&out](const Step& step) { out = step.collect(); };
  try {
    if (batches.size() > 1) {
      prepared.run_each(batches, request.between, use);
    } else {
      prepared.run(batches.empty() ? std::vector<Tensor>() : batches[0], request.between, use);
    }
  } catch (const BadFeed& e) {
    if (!request.read) throw;
    throw Error(e.kind(), "read: " + e.message());
  }
  return out;
}

int CompiledProgram::replicas() const { return impl_->options.replicas; }

std::string CompiledProgram::explain() const {
  const Impl::Exclusive exclusive(*impl_);
  return impl_->bindings.empty() ? "nothing has run yet\n" : impl_->bindings.front().last().explain();
}

std::string CompiledProgram::graph_dot() const {
  const Impl::Exclusive exclusive(*impl_);
  return impl_->bindings.empty() ? "" : impl_->bindings.front().last().dot();
}

CompiledProgram::RandomState CompiledProgram::random_state() const {
  const Impl::Exclusive exclusive(*impl_);
  return {impl_->drawn_seed, impl_->run_number};
}

void CompiledProgram::set_random_state(RandomState state) {
  const Impl::Exclusive exclusive(*impl_);
  if (state.seed != impl_->drawn_seed) impl_->drop_plans();  // they hold the seed
  impl_->drawn_seed = state.seed;
  impl_->run_number = state.runs;
}

std::vector<CompiledProgram::ReplicaState> CompiledProgram::replica_states() const {
  const Impl::Exclusive exclusive(*impl_);
  std::vector<ReplicaState> out;
  for (const auto& copy : impl_->values.copies()) {
    const Tensor* tensor = copy.value->get<Tensor>();
    if (!tensor || !tensor->initialized()) continue;
    out.push_back({copy.name, copy.replica, {}});
    out.back().value.copy_from(*tensor);
  }
  return out;
}

void CompiledProgram::set_replica_states(const std::vector<ReplicaState>& states) {
  const Impl::Exclusive exclusive(*impl_);
  for (const ReplicaState& s : states) {
    AB_CHECK(s.replica > 0 && s.replica < impl_->options.replicas, InvalidArgument,
             "state of replica {} for a program of {}", s.replica, counted(impl_->options.replicas, "replica"));
  }
  for (const ReplicaState& s : states) impl_->values.set_copy(s.name, s.replica, s.value);
}

void CompiledProgram::drop_temporaries() {
  const Impl::Exclusive exclusive(*impl_);
  impl_->drop_temporaries();
}

int64_t CompiledProgram::temporary_bytes() const {
  const Impl::Exclusive exclusive(*impl_);
  int64_t bytes = 0;
  for (Binding& b : impl_->bindings) b.each([&](Step& s) { bytes += s.layout().temporary_bytes(); });
  return bytes;
}

std::vector<MemoryUse> CompiledProgram::memory() const {
  const Impl::Exclusive exclusive(*impl_);
  std::vector<MemoryUse> out;
  for (Binding& b : impl_->bindings) b.each([&](const Step& s) { s.add_memory(&out); });
  return out;
}

void CompiledProgram::set_probe(Probe probe) { impl_->probe = std::move(probe); }

void CompiledProgram::set_plan_hook(PlanHook hook) { impl_->plan_hook = hook; }

}  // namespace anabranch
