#include "engine/step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/flags.h"
#include "core/row_locks.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

int64_t elems(const Value* v) {
  const Tensor* t = v ? v->get<Tensor>() : nullptr;
  return t ? t->numel() : 0;
}

}  // namespace

Step::Step(const StepKey& key, const StepOptions& options)
    : key_(key), compile_(*options.compile), values_(options.values) {
  make_graph(options);
  team_ = &Team::of_size(compile_.execution.num_threads);
  LowerOptions lowering;
  lowering.program = options.program;
  lowering.parallel = team_;
  lowering.seed = options.seed;
  lowering.seeded = options.program->random_seed != 0;
  lowering.outside = [&](const GraphVar& v) -> Value* {
    if (v.fed && v.replica > 0) return nullptr;  // fed anew in every run
    if (v.desc.persistable) return hold(values_->get(v.name, v.replica));
    // A temporary that nobody makes may have been put into the scope by hand.
    return v.produced || v.fed ? nullptr : hold(values_->find(v.name));
  };
  lowered_ = lower(graph_, lowering);
  state_ = std::make_unique<RunState>(*lowered_.plan);
  describe_ = [this](int node) { return lowered_.describe[node]; };
  state_->watch_for_stalls(describe_);
  make_slots();
  find_temporaries();
}

void Step::make_graph(const StepOptions& options) {
  ReplicateOptions r;
  r.replicas = compile_.replicas;
  r.active = key_.active;
  r.data_parallel = compile_.data_parallel;
  r.exact_fluid = Flags::exact_fluid();
  r.loss_name = compile_.loss_name;
  r.fed = {key_.feeds.begin(), key_.feeds.end()};
  r.fetched = {key_.fetches.begin(), key_.fetches.end()};
  r.build = compile_.build;
  graph_ = replicate(*options.program, r);
  passes_ = run_passes(graph_, {compile_.build});
}

Value* Step::hold(std::shared_ptr<Value> value) {
  return value ? outside_.emplace_back(std::move(value)).get() : nullptr;
}

void Step::make_slots() {
  const std::set<int> changed = changed_vars();
  std::set<Value*> seen;
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    Value* value = lowered_.values[v];
    if (!lowered_.is_outside[v] || !seen.insert(value).second) continue;
    if (var.desc.persistable && var.replica == 0 && changed.count(static_cast<int>(v))) written_.push_back(value);
    if (!var.dynamic) watched_.push_back({value, {}});  // who reads a dynamic one looks at its shape in every run
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const OpDef& def = find_op(graph_.nodes[i].op->type);
    if (def.has(kRandom) || def.has(kRunsBlock)) numbered_.push_back(static_cast<int>(i));
  }
  std::set<int> writes;
  for (const auto& w : lowered_.writes) writes.insert(w.begin(), w.end());
  feed_slots_.resize(key_.active);
  for (int r = 0; r < key_.active; ++r) {
    for (const auto& name : key_.feeds) {
      const int v = graph_.first(name, r);
      const bool used = v >= 0;
      const bool stays = used && graph_.vars[v].desc.persistable;
      feed_slots_[r].push_back({used ? lowered_.values[v] : nullptr, stays || writes.count(v) != 0, {}, {}, {}, false});
      if (stays && r == 0 && !graph_.vars[v].produced) written_.push_back(lowered_.values[v]);
    }
  }
  for (const auto& name : key_.fetches) {
    auto& values = fetch_values_.emplace_back();
    const int first = graph_.fetched_as(name, 0);
    fetches_kept_.push_back(first >= 0 && graph_.vars[first].desc.persistable);
    for (int r = 0; r < compile_.replicas; ++r) {
      const int v = graph_.fetched_as(name, std::min(r, graph_.replicas - 1));
      if (v < 0 || graph_.vars[v].replica != r) continue;
      const GraphVar& var = graph_.vars[v];
      const bool active = r < key_.active;
      if (active && (var.produced || var.fed || var.desc.persistable || lowered_.values[v]->initialized())) {
        values.push_back(lowered_.values[v]);
      }
    }
    // A parameter exists once: every active replica that uses it shows the same one.
    if (fetches_kept_.back() && values.size() == 1) values.resize(std::max(1, users_of(first)), lowered_.values[first]);
    if (values.empty()) {
      if (Value* v = hold(values_->find(name))) values.push_back(v);
    }
    if (values.empty()) {
      throw Error(ErrorKind::kNotFound, fmt::format("fetched variable {} is computed by no op of the program and is "
                                                    "not in the scope",
                                                    name))
          .with_hint("check the name; a variable of a pruned or test program may have been removed with its op");
    }
  }
}

// What a run may change: ops list as outputs, too, what they leave alone (statistics while testing).
std::set<int> Step::changed_vars() const {
  std::set<int> changed;
  for (const GraphNode& node : graph_.nodes) {
    const bool frozen = find_op(node.op->type).is_frozen(*node.op);
    for (int v : graph_.writes(node)) {
      if (!frozen || std::count(node.ins.begin(), node.ins.end(), v) == 0) changed.insert(v);
    }
  }
  return changed;
}

int Step::users_of(int var) const {
  std::set<int> replicas;
  for (const GraphNode& node : graph_.nodes) {
    const auto& ins = graph_.reads(node);
    const auto& outs = graph_.writes(node);
    if (std::count(ins.begin(), ins.end(), var) || std::count(outs.begin(), outs.end(), var))
      replicas.insert(node.replica);
  }
  return static_cast<int>(replicas.size());
}

bool Step::bind_feeds(const Pieces& feeds) {
  bool changed = false;
  for (int r = 0; r < key_.active; ++r) {
    for (size_t i = 0; i < key_.feeds.size(); ++i) {
      FeedSlot& slot = feed_slots_[r][i];
      if (!slot.value) continue;
      const Tensor& fed = feeds[r][i];
      Tensor& t = slot.value->as<Tensor>();
      if (slot.keeps) {
        t.copy_from(fed);
      } else {
        t.view(const_cast<void*>(fed.raw()), fed.shape(), fed.dtype(), nullptr, fed.row_stride());
        t.set_lod(fed.lod_ref());
      }
      const bool same_lod = slot.lod == fed.lod_ref() || (slot.lod && fed.lod_ref() && *slot.lod == *fed.lod_ref());
      if (slot.laid_out && slot.shape == fed.shape() && slot.dtype == fed.dtype() && same_lod) continue;
      slot.shape = fed.shape();
      slot.dtype = fed.dtype();
      slot.lod = fed.lod_ref();
      slot.laid_out = true;
      changed = true;
    }
  }
  return changed;
}

void Step::release_feeds() {
  for (auto& slots : feed_slots_) {
    for (FeedSlot& slot : slots) {
      if (slot.value && !slot.keeps) slot.value->as<Tensor>().release();
    }
  }
}

bool Step::watched_changed() {
  bool changed = false;
  for (Watched& w : watched_) {
    if (w.form.is_that_of(*w.value)) [[likely]]
      continue;
    w.form = Form(*w.value);
    changed = true;
  }
  return changed;
}

void Step::lay_out() {
  laid_out_ = false;  // until every node is
  int at = 0;
  try {
    lowered_.plan->lay_out(&at);
  } catch (Error& e) {
    throw e.with_op(lowered_.describe[at]).with_while("inferring shapes");
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kResourceExhausted, "out of memory").with_op(lowered_.describe[at]);
  }
  watched_changed();  // what this plan itself creates does not count as a change
  weigh();
  if (memory_.outgrown(shareable_)) place_temporaries();
  laid_out_ = true;
}

void Step::weigh() {
  int64_t touched = 0;
  for (const GraphNode& node : graph_.nodes) {
    for (int v : graph_.reads(node)) touched += elems(lowered_.values[v]);
    for (int v : graph_.writes(node)) touched += elems(lowered_.values[v]);
  }
  trial_.set_work(touched);
}

bool Step::may_run_parallel() const { return team_->workers() > 1 && !lowered_.plan->is_chain(); }

void Step::place_temporaries() { lowered_.plan->order(memory_.place(shareable_, may_run_parallel())); }

// What only nodes of the plan itself look at, and only after one of them has written it.
void Step::find_temporaries() {
  std::map<const Value*, Temporary> found;
  std::set<const Value*> kept;
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    const bool shares = !var.desc.persistable && !var.fed && !var.fetched && !var.dynamic && var.produced &&
                        var.desc.kind == VarKind::kLoDTensor;
    if (!shares) kept.insert(lowered_.values[v]);
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    const bool runs_block = find_op(node.op->type).has(kRunsBlock);
    const auto note = [&](int v, bool writes) {
      Value* value = lowered_.values[v];
      const auto [it, fresh] = found.try_emplace(value);
      Temporary& t = it->second;
      if (runs_block || (fresh && !writes)) kept.insert(value);
      if (fresh) t = {value, static_cast<int>(i), -1, {}};
      if (t.users.empty() || t.users.back() != static_cast<int>(i)) t.users.push_back(static_cast<int>(i));
      t.last = static_cast<int>(i);
    };
    for (int v : graph_.reads(node)) note(v, false);
    for (int v : graph_.writes(node)) note(v, true);
  }
  for (auto& [value, t] : found) {
    if (!kept.count(value)) shareable_.push_back(std::move(t));
  }
}

void Step::check_finite(int node) const {
  for (int v : lowered_.writes[node]) {
    const auto* rows = lowered_.values[v]->get<SelectedRows>();
    const Tensor* t = rows ? &rows->value : lowered_.values[v]->get<Tensor>();
    if (!t || !t->initialized() || !(t->dtype() == DType::kFloat32 || t->dtype() == DType::kFloat64)) continue;
    visit_dtype(t->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = t->data<T>();
      for (int64_t i = 0; i < t->numel(); ++i) {
        AB_CHECK(std::isfinite(static_cast<double>(x[i])), InvalidArgument,
                 "FLAGS_check_nan_inf: {} holds {} at element {} of {}{}", graph_.vars[v].name,
                 static_cast<double>(x[i]), i, rows ? "the rows " : "", t->shape().str());
      }
    });
  }
}

void Step::report(Error error, int node) const {
  if (node >= 0) error.in_op(graph_.nodes[node].op->type).with_op(lowered_.describe[node]);
  std::set<std::string> changed;
  for (int i = 0; i < lowered_.plan->size(); ++i) {
    if (!state_->started(i)) continue;
    for (int v : lowered_.writes[i]) {
      const GraphVar& var = graph_.vars[v];
      if (!var.desc.persistable) continue;
      changed.insert(compile_.replicas > 1 ? fmt::format("{} (replica {})", var.name, var.replica) : var.name);
    }
  }
  std::string list;
  for (const auto& name : changed) list += (list.empty() ? "" : ", ") + name;
  error.with_note("state  persistable variables that had changed before the error: " +
                  (changed.empty() ? "none" : list));
  throw error;
}

void Step::execute(uint32_t number, const Hooks& hooks, Trace* trace) {
  Plan& plan = *lowered_.plan;
  for (int i : numbered_) plan.node(i).context.step = number;
  std::function<void(int)> before, after;
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
    after = [&](int node) { check_finite(node); };
    options.after = &after;
  }
  const bool possible = !Team::inside() && may_run_parallel();
  const bool parallel = possible && trial_.choose(asked_for_threads());
  const ThreadTrial::Lap lap(trial_, possible && options.plain());
  try {
    if (hooks.plan) hooks.plan(true);
    if (parallel) {
      run_threaded(plan, *state_, *team_, options);
    } else {
      run_sequential(plan, *state_, options);
    }
    if (hooks.plan) hooks.plan(false);
  } catch (const Error& e) {
    report(e, state_->failed_node());
  } catch (const std::bad_alloc&) {
    report(Error(ErrorKind::kResourceExhausted, "out of memory"), state_->failed_node());
  } catch (const std::exception& e) {
    report(Error(ErrorKind::kInternal, e.what()), state_->failed_node());
  }
}

// Asking for several replicas, or setting num_threads, counts as asking for threads.
bool Step::asked_for_threads() const { return compile_.replicas > 1 || compile_.execution.num_threads > 1; }

Fetched Step::collect(size_t fetch) const {
  Fetched pieces;
  const RowLocks::HoldAll whole_rows(fetches_kept_[fetch] && RowLocks::shared());
  for (const Value* v : fetch_values_[fetch]) {
    if (const auto* array = v->get<TensorArray>()) {
      TensorArray& copy = std::get<TensorArray>(pieces.emplace_back(TensorArray(array->size())));
      for (size_t i = 0; i < array->size(); ++i) copy[i].copy_from((*array)[i]);
      continue;
    }
    const auto* rows = v->get<SelectedRows>();
    const Tensor* t = rows ? &rows->value : v->get<Tensor>();
    AB_CHECK(t && t->initialized(), NotFound, "fetched variable {} holds no value", key_.fetches[fetch]);
    std::get<Tensor>(pieces.emplace_back(Tensor())).copy_from(*t);
  }
  return pieces;
}

std::vector<Fetched> Step::collect() const {
  std::vector<Fetched> out;
  for (size_t f = 0; f < fetch_values_.size(); ++f) out.push_back(collect(f));
  return out;
}

// True when the shapes of all nodes have to be found again.
bool Step::feed(const Pieces& feeds, Trace* trace) {
  const TraceSpan span(trace, -1, TraceEvent::kFeed);
  values_->refresh_copies();
  const bool fed_changed = bind_feeds(feeds);
  return fed_changed || watched_changed() || !laid_out_;
}

void Step::run(const Pieces& feeds, uint32_t number, const Hooks& hooks) {
  const StepProfile::Run profiled(profile_, graph_, lowered_);
  if (feed(feeds, profiled.trace())) {
    const TraceSpan span(profiled.trace(), -1, TraceEvent::kShapes);
    lay_out();
  }
  try {
    execute(number, hooks, profiled.trace());
  } catch (...) {
    values_->mark_written(written_, /*complete=*/false);
    throw;
  }
  values_->mark_written(written_, /*complete=*/true);
}

std::string Step::explain() const {
  std::string text =
      fmt::format("{} nodes on {} replicas ({} with work), {} threads, {}\n", lowered_.plan->size(), compile_.replicas,
                  key_.active, team_->workers(), lowered_.plan->is_chain() ? "a chain: run in order" : "a graph");
  text +=
      fmt::format("  memory of temporaries: {} bytes, {} without sharing\n", memory_.bytes(), memory_.unshared_bytes());
  for (const auto& p : passes_) text += fmt::format("  {:<16} {}\n", p.name, p.outcome);
  return text;
}

void Step::drop_temporaries() {
  for (Value& v : lowered_.temporaries) {
    if (Tensor* t = v.get<Tensor>()) t->release();
  }
  memory_.drop();
  laid_out_ = false;
}

void Step::add_memory(std::vector<MemoryUse>* out) const {
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    const auto kind = var.desc.persistable ? MemoryUse::kKept : MemoryUse::kTemporary;
    if (lowered_.values[v]) anabranch::add_memory(*lowered_.values[v], var.name, var.replica, kind, out);
  }
  for (size_t r = 0; r < feed_slots_.size(); ++r) {
    for (size_t i = 0; i < feed_slots_[r].size(); ++i) {
      const FeedSlot& slot = feed_slots_[r][i];
      if (slot.keeps || !slot.laid_out) continue;
      const auto bytes = slot.shape.numel() * static_cast<int64_t>(dtype_size(slot.dtype));
      out->push_back({key_.feeds[i], static_cast<int>(r), MemoryUse::kFed, 0, bytes});
    }
  }
}

int64_t Step::temporary_bytes() const {
  int64_t bytes = memory_.bytes();
  for (const Value& v : lowered_.temporaries) {
    if (const Tensor* t = v.get<Tensor>(); t && t->initialized() && !memory_.holds(t->raw()))
      bytes += static_cast<int64_t>(t->bytes());
  }
  return bytes;
}

}  // namespace anabranch
