#include "engine/compiled_program.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <random>
#include <thread>

#include "base/flags.h"
#include "engine/feed.h"
#include "engine/replica_values.h"
#include "engine/step.h"

namespace anabranch {
namespace {

// Seed of random ops that were given none: another one for each compiled program of each process.
uint64_t fresh_seed() {
  static std::atomic<uint64_t> drawn{0};
  static const uint64_t of_process = [] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) ^ device();
  }();
  return of_process + 0x9e3779b97f4a7c15u * ++drawn;
}

void check_options(const CompileOptions& o) {
  AB_CHECK(o.replicas >= 1, InvalidArgument, "{} replicas, at least one is needed", o.replicas);
  AB_CHECK(o.execution.num_iteration_per_drop_scope >= 1, InvalidArgument,
           "num_iteration_per_drop_scope is {}, expected at least 1", o.execution.num_iteration_per_drop_scope);
  AB_CHECK(o.execution.num_iteration_per_run >= 1, InvalidArgument, "num_iteration_per_run is {}, expected at least 1",
           o.execution.num_iteration_per_run);
  AB_CHECK(o.build.trainer_id >= 0 && o.build.trainer_id < o.build.num_trainers, InvalidArgument,
           "trainer_id is {}, num_trainers is {}", o.build.trainer_id, o.build.num_trainers);
  AB_CHECK(o.build.num_trainers == 1 || !o.data_parallel, Unsupported,
           "num_trainers is {}: sums between processes are not in this build", o.build.num_trainers);
  AB_CHECK(!o.build.async_mode, Unsupported, "async_mode: replicas that run independently are not in this build");
}

}  // namespace

struct CompiledProgram::Impl {
  // The calling thread's turn with this program.
  class Turn {
   public:
    explicit Turn(Impl& impl) : impl_(impl) {
      AB_CHECK(impl.user.load() != std::this_thread::get_id(), Unsupported,
               "a compiled program is used while it runs, from inside its own run");
      impl.in_use.lock();
      impl.user = std::this_thread::get_id();
    }
    ~Turn() {
      impl_.user = std::thread::id();
      impl_.in_use.unlock();
    }
    Turn(const Turn&) = delete;

   private:
    Impl& impl_;
  };

  ir::ProgramRef program;
  std::shared_ptr<Scope> scope;
  CompileOptions options;
  ReplicaValues values;
  std::list<Step> steps;  // the most recently used one first
  uint64_t version;
  uint32_t run_number = 0;
  int since_drop = 0;
  const uint64_t drawn_seed = fresh_seed();
  Probe probe;
  mutable std::mutex in_use;  // taken once a run: callers from several threads take turns
  std::atomic<std::thread::id> user{};

  Impl(ir::ProgramRef p, std::shared_ptr<Scope> s, CompileOptions o)
      : program(std::move(p)),
        scope(std::move(s)),
        options(std::move(o)),
        values(scope, options.replicas, reduces() ? shared_persistables(*program) : std::set<std::string>{}),
        version(program->version()) {
    check_options(options);
    if (options.share_vars_from) values.borrow_from(&options.share_vars_from->impl_->values);
  }

  bool reduces() const {
    return options.data_parallel && options.replicas > 1 && options.build.reduce_strategy == ReduceMode::kReduce;
  }

  // What is fed: dtype as declared; variables that the program does not have are left out.
  FeedMap relevant(const FeedMap& feed) const {
    FeedMap out;
    for (const auto& [name, tensor] : feed) {
      const auto var = program->global_block().find_var(name);
      if (!var) continue;
      AB_CHECK(tensor.initialized(), InvalidArgument, "feed {} holds no value", name);
      AB_CHECK(tensor.shape().rank() > 0, ShapeMismatch, "feed {} has rank 0, at least 1 is needed", name);
      if (tensor.lod_ref()) check_lod(tensor.lod(), tensor.rows());
      out.emplace_back(name, tensor);
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  }

  // Persistable variables are fed whole to every replica, unless there is exactly one whole a replica.
  std::vector<std::string> fed_to_all(const FeedMap& feed) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : feed) {
      const auto var = program->global_block().find_var(name);
      const bool one_a_replica = var->shape.rank() > 0 && tensor.rows() == var->shape[0] * options.replicas;
      if (var->persistable && !one_a_replica) names.push_back(name);
    }
    return names;
  }

  std::vector<FeedMap> pieces_of(const RunRequest& request) const {
    const int n = options.replicas;
    if (request.feeds.empty()) return std::vector<FeedMap>(n);
    if (request.feeds.size() > 1) {
      AB_CHECK(static_cast<int>(request.feeds.size()) == n, InvalidArgument,
               "a list of {} feeds is given for {} replicas", request.feeds.size(), n);
      std::vector<FeedMap> pieces;
      for (const auto& f : request.feeds) pieces.push_back(relevant(f));
      return pieces;
    }
    const FeedMap feed = relevant(request.feeds[0]);
    if (feed.empty()) return std::vector<FeedMap>(n);
    return split_feed(feed, n, fed_to_all(feed), Flags::exact_fluid());
  }

  Step& step_for(const std::vector<FeedMap>& pieces, const std::vector<std::string>& fetch) {
    if (program->version() != version) {
      steps.clear();
      version = program->version();
    }
    StepKey key;
    for (const auto& [name, tensor] : pieces[0]) key.feeds.push_back(name);
    key.fetches = fetch;
    key.active = static_cast<int>(pieces.size());
    for (const auto& p : pieces) {
      AB_CHECK(p.size() == key.feeds.size(), InvalidArgument, "the replicas are fed different variables");
      for (size_t i = 0; i < p.size(); ++i) {
        AB_CHECK(p[i].first == key.feeds[i], InvalidArgument, "the replicas are fed different variables: {} and {}",
                 key.feeds[i], p[i].first);
      }
    }
    auto it = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.key() == key; });
    if (it != steps.end()) {
      steps.splice(steps.begin(), steps, it);
      return steps.front();
    }
    const uint64_t seed = program->random_seed ? static_cast<uint64_t>(program->random_seed) : drawn_seed;
    steps.emplace_front(key, StepOptions{program.get(), &options, &values, seed});
    if (static_cast<int64_t>(steps.size()) > std::max<int64_t>(1, Flags::plan_cache_size())) steps.pop_back();
    return steps.front();
  }

  void drop_temporaries() {
    for (Step& s : steps) s.drop_temporaries();
    since_drop = 0;
  }
};

CompiledProgram::CompiledProgram(ir::ProgramRef program, std::shared_ptr<Scope> scope, CompileOptions options)
    : impl_(std::make_unique<Impl>(std::move(program), std::move(scope), std::move(options))) {}

CompiledProgram::~CompiledProgram() = default;

std::vector<Fetched> CompiledProgram::run(const RunRequest& request) {
  Impl& m = *impl_;
  const Impl::Turn turn(m);
  const auto pieces = m.pieces_of(request);
  Step& step = m.step_for(pieces, request.fetch);
  std::vector<Fetched> out;
  for (int i = 0; i < m.options.execution.num_iteration_per_run; ++i) {
    if (i > 0 && request.between) request.between();
    out = step.run(pieces, m.run_number++, m.probe);
  }
  // Memory of temporaries is used again by the next run, so only plans that stand idle hold more than is needed.
  if (++m.since_drop >= m.options.execution.num_iteration_per_drop_scope) {
    for (Step& s : m.steps) {
      if (&s != &step) s.drop_temporaries();
    }
    m.since_drop = 0;
  }
  return out;
}

int CompiledProgram::replicas() const { return impl_->options.replicas; }

std::string CompiledProgram::explain() const {
  const Impl::Turn turn(*impl_);
  return impl_->steps.empty() ? "nothing has run yet\n" : impl_->steps.front().explain();
}

std::string CompiledProgram::graph_dot() const {
  const Impl::Turn turn(*impl_);
  return impl_->steps.empty() ? "" : impl_->steps.front().dot();
}

void CompiledProgram::drop_temporaries() {
  const Impl::Turn turn(*impl_);
  impl_->drop_temporaries();
}

int64_t CompiledProgram::temporary_bytes() const {
  const Impl::Turn turn(*impl_);
  int64_t bytes = 0;
  for (const Step& s : impl_->steps) bytes += s.temporary_bytes();
  return bytes;
}

void CompiledProgram::set_probe(Probe probe) { impl_->probe = std::move(probe); }

}  // namespace anabranch
