#include "engine/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/cpu.h"
#include "base/flags.h"
#include "base/user_error.h"
#include "comm/group.h"
#include "device/purpose.h"
#include "engine/server_waits.h"
#include "engine/step_memory.h"
#include "engine/step_values.h"
#include "graph/replicate.h"
#include "opdef/device_status.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Processes of one machine that compute together share its cores: if each used all of them, threads would wait for
// threads of other processes.
int threads_of(const CompileOptions& o) {
  if (o.execution.num_threads > 0) return o.execution.num_threads;
  const auto group = comm::find_ring(0);
  const int cores = group ? cores_per_process(group->processes_here()) : usable_cores();
  const int asked = threads_asked_for();
  return asked > 0 ? static_cast<int>(std::min<int64_t>(cores, int64_t{asked} * std::max(1, o.replicas))) : cores;
}

}  // namespace

Step::Step(const StepKey& key, const StepOptions& options)
    : key_(key),
      options_(options),
      compile_(*options.compile),
      version_(options.program->version()),
      values_(options.values) {
  graph_ = make_graph(&passes_, nullptr);
  pool_ = &ThreadPool::of_size(threads_of(compile_));
  LowerOptions lowering;
  lowering.program = options.program;
  lowering.parallel = pool_;
  lowering.seed = options.seed;
  lowering.build = compile_.build;
  lowering.disable = options.disable;
  if (compile_.data_parallel && compile_.build.num_trainers > 1) {
    lowering.first_replica = compile_.build.trainer_id * compile_.replicas;
  } else if (const auto trainer = trainer_of(*options.program)) {
    lowering.first_replica = trainer->number * compile_.replicas;
  }
  lowering.seeded = options.program->random_seed != 0;
  lowering.outside = [&](const GraphVar& v) -> Value* {
    if (v.fed && v.replica > 0) return nullptr;  // fed in every run
    if (v.desc.persistable) return hold(values_->get(v.name, v.replica));
    // A temporary that no op computes may have been set in the scope by the user.
    return v.produced || v.fed ? nullptr : hold(values_->find(v.name));
  };
  lowered_ = lower(graph_, lowering);
  state_ = std::make_unique<RunState>(*lowered_.plan);
  describe_ = with_server_waits(graph_, lowered_.report);
  state_->watch_for_stalls(describe_);
  if (state_->queues()) {
    state_->queues()->describe_faults([this](int node, int code, int64_t detail) {
      return fault_text(*graph_.nodes[static_cast<size_t>(node)].op, code, detail);
    });
    const auto least = std::get<int64_t>(get_flag("FLAGS_device_graphs"));
    if (least > 0) state_->queues()->capture(std::move(lowered_.capturable), static_cast<size_t>(least));
  }
  layout_ = std::make_unique<Layout>(Layout::Of{graph_, lowered_, *state_, passes_, compile_, key_.fetches});
  note_changes();
  make_feed_slots();
  for (const auto& name : key_.fetches) add_fetch(name);
}

Graph Step::make_graph(std::vector<PassReport>* passes, std::vector<std::string>* near_misses) const {
  ReplicateOptions r;
  r.replicas = compile_.replicas;
  r.active = key_.active;
  r.data_parallel = compile_.data_parallel;
  r.exact_fluid = Flags::exact_fluid();
  r.loss_name = compile_.loss_name;
  r.fed = {key_.feeds.begin(), key_.feeds.end()};
  r.fetched = {key_.fetches.begin(), key_.fetches.end()};
  r.build = compile_.build;
  r.apart = compile_.on_devices();
  r.trainer = trainer_of(*options_.program);
  r.independent = compile_.data_parallel && replicas_are_independent(*options_.program, compile_.build, r.replicas);
  if (compile_.data_parallel) r.trainers = compile_.build.num_trainers;
  Graph graph = replicate(*options_.program, r);
  PassContext context{compile_.build, options_.disable, options_.program};
  context.places = compile_.places;
  context.near_misses = near_misses;
  *passes = run_passes(graph, context);
  return graph;
}

Value* Step::hold(std::shared_ptr<Value> value) {
  return value ? outside_.emplace_back(std::move(value)).get() : nullptr;
}

void Step::note_changes() {
  const std::set<int> changed = changed_vars(graph_);
  std::set<Value*> seen;
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    Value* value = lowered_.values[v];
    if (!lowered_.is_outside[v] || !seen.insert(value).second) continue;
    if (var.desc.persistable && var.replica == 0 && changed.count(static_cast<int>(v))) written_.push_back(value);
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const OpDef& def = find_op(graph_.nodes[i].op->type);
    const int node = static_cast<int>(i);
    if (def.has(kRandom) || def.has(kRunsBlock) || lowered_.plan->uses_status(node)) numbered_.push_back(node);
  }
}

// The place at which the readers of variable v use it: the host, or the device to which all of them copy it.
Place Step::needed_at(int v) const {
  std::optional<Place> needed;
  for (const GraphNode& node : graph_.nodes) {
    const std::vector<int> reads = graph_.reads(node);
    if (std::find(reads.begin(), reads.end(), v) == reads.end()) continue;
    const bool copies = node.from.on_host() && !node.place.on_host();
    if (!copies || (needed && !(*needed == node.place))) return Place();
    needed = node.place;
  }
  return needed && !graph_.vars[static_cast<size_t>(v)].fetched ? *needed : Place();
}

void Step::make_feed_slots() {
  std::set<int> writes;
  for (const auto& w : lowered_.writes) writes.insert(w.begin(), w.end());
  for (int r = 0; r < key_.active; ++r) {
    for (const auto& name : key_.feeds) {
      const int v = graph_.first(name, r);
      const bool used = v >= 0;
      const bool stays = used && graph_.vars[v].desc.persistable;
      feeds_.add(r, used ? lowered_.values[v] : nullptr, stays || writes.count(v) != 0,
                 used && compile_.on_devices() ? needed_at(v) : Place());
      if (stays && r == 0 && !graph_.vars[v].produced) written_.push_back(lowered_.values[v]);
    }
  }
}

void Step::add_fetch(const std::string& name) {
  std::vector<Value*> values;
  const int first = graph_.fetched_as(name, 0);
  const bool kept = first >= 0 && graph_.vars[first].desc.persistable;
  for (int r = 0; r < compile_.replicas; ++r) {
    const int v = graph_.on_host(graph_.fetched_as(name, std::min(r, graph_.replicas - 1)));
    if (v < 0 || graph_.vars[v].replica != r) continue;
    const GraphVar& var = graph_.vars[v];
    const bool active = r < key_.active;
    if (active && (var.produced || var.fed || var.desc.persistable || lowered_.values[v]->initialized())) {
      values.push_back(lowered_.values[v]);
    }
  }
  // A parameter exists once: every active replica that uses it returns the same one.
  if (kept && values.size() == 1) values.resize(std::max(1, users_of(graph_, first)), values[0]);
  if (values.empty()) {
    if (Value* v = hold(values_->find(name))) values.push_back(v);
  }
  fetches_.add(name, std::move(values), kept);
}

bool Step::may_run_parallel() const { return pool_->workers() > 1 && !lowered_.plan->is_chain(); }

void Step::execute(uint32_t number, const Hooks& hooks, Trace* trace) {
  Plan& plan = *lowered_.plan;
  for (int i : numbered_) plan.node(i).context.step = number;
  std::function<void(int)> before, after;
  const CheckValue check = [](const Value& value, const std::string& name) { check_finite(value, name); };
  RunOptions options;
  options.dry_run = compile_.execution.dry_run;
  options.stall_report_s = Flags::stall_report_s();
  options.describe = &describe_;
  options.trace = trace;
  if (hooks.probe) {
    before = [&](int node) { hooks.probe(lowered_.types[node], lowered_.replicas[node], node); };
    options.probe = &before;
  }
  if (Flags::check_nan_inf()) {
    after = [&](int node) { check_finite(graph_, lowered_, node); };
    options.after = &after;
    options.check = &check;
  }
  // A step that waits for others must not occupy the process's workers, which they may need to answer.
  const bool possible = !ThreadPool::inside() && may_run_parallel() && !plan.has_async() && plan.queue_count() == 0;
  const bool parallel = possible && trial_.choose(asked_for_threads());
  const ThreadTrial::Lap lap(trial_, possible && options.plain());
  std::optional<device::Purpose> working;
  if (plan.queue_count() > 0)
    working.emplace([this] { return "work of the ops that make " + made_by(graph_, state_->at()); });
  try {
    if (hooks.plan) hooks.plan(true);
    if (parallel) {
      run_threaded(plan, *state_, *pool_, options);
    } else {
      run_sequential(plan, *state_, options);
    }
    if (hooks.plan) hooks.plan(false);
  } catch (const Error& e) {
    fail(e);
  } catch (const std::bad_alloc&) {
    fail(Error(ErrorKind::kResourceExhausted, "out of memory"));
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& e) {
    fail(Error(ErrorKind::kInternal, e.what()));
  }
}

void Step::fail(Error error) const {
  throw describe_failure(std::move(error), state_->failed_node(), graph_, lowered_, *state_);
}

// Using several replicas, or setting num_threads, counts as a request for threads.
bool Step::asked_for_threads() const { return compile_.replicas > 1 || compile_.execution.num_threads > 1; }

bool Step::feed(const Slices& feeds, Trace* trace) {
  const TraceSpan span(trace, -1, TraceEvent::kFeed);
  values_->refresh_copies();
  const bool fed_changed = feeds_.bind(feeds);
  return layout_->outside_changed() || fed_changed;
}

void Step::execute_and_note(uint32_t number, const Hooks& hooks, Trace* trace) {
  try {
    execute(number, hooks, trace);
  } catch (...) {
    values_->mark_written(written_, /*complete=*/false);
    throw;
  }
  values_->mark_written(written_, /*complete=*/true);
}

Layout::Made Step::run(const Slices& feeds, uint32_t number, const Hooks& hooks) {
  const StepProfile::Run profiled(profile_, graph_, lowered_);
  if (feed(feeds, profiled.trace()) || !layout_->holds()) {
    const TraceSpan span(profiled.trace(), -1, TraceEvent::kShapes);
    if (const Layout::Made made = layout_->make(may_run_parallel()); made != Layout::Made::kReady) return made;
    trial_.set_work(touched_elems(graph_, lowered_));
  }
  execute_and_note(number, hooks, profiled.trace());
  return Layout::Made::kReady;
}

}  // namespace anabranch
