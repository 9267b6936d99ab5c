#include "engine/train_loop.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>
#include <optional>
#include <utility>

#include "base/thread_pool.h"
#include "base/threads.h"
#include "core/row_locks.h"
#include "engine/prepared_run.h"
#include "engine/trainer_states.h"
#include "graph/trainers.h"
#include "ps/exchanger.h"
#include "ps/trainers.h"

namespace anabranch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(100);

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

constexpr size_t kShownAhead = 64;  // values that may wait for the caller's thread before the training thread blocks

// Training threads merge after every batch if that is cheap, otherwise so rarely that it costs a sixteenth of their
// time, but at least once in this number of batches of all threads: the farther they drift apart, the worse they learn.
constexpr int64_t kApart = 32, kMergeShare = 16;

// A training thread's own program: each draws different random numbers.
ir::ProgramRef program_of(const ir::ProgramRef& program, int trainer) {
  ir::ProgramRef own = program->clone();
  if (own->random_seed != 0) own->random_seed += int64_t{7919} * trainer;
  return own;
}

}  // namespace

struct TrainLoop::Impl {
  struct Trainer {
    std::unique_ptr<CompiledProgram> own;
    CompiledProgram* program = nullptr;
    std::unique_ptr<PreparedRun> prepared;
    std::vector<size_t> columns;  // of a batch, with which the program is fed
    std::vector<Tensor> fed;
    data::Batch batch;
    int64_t until_merge = 1;                               // batches
    alignas(64) std::atomic<int64_t> batches{0}, rows{0};  // of this pass
    std::atomic<int64_t> waited_ns{0}, running_ns{0};
    std::vector<double> sums;  // of the averaged fetches times the rows of their batches
    std::vector<RankingCounts> ranking;
  };

  ir::ProgramRef program;
  TrainLoopOptions options;
  std::unique_ptr<TrainerStates> states;  // null: one training thread
  std::vector<std::unique_ptr<Trainer>> trainers;

  // State of the current pass.
  data::BatchStream* stream = nullptr;
  Clock::time_point begun;
  std::mutex mutex;
  std::condition_variable changed;  // a training thread has ended or shows values
  std::condition_variable taken;    // values were taken
  int running = 0;                  // number of training threads
  std::exception_ptr error;         // the first one
  struct Shown {
    int64_t batch;
    std::vector<Fetched> values;
  };
  std::deque<Shown> shown;  // waiting for the caller's thread
  // The first training thread shows values: the others start when it has a batch, or they might take all of them.
  std::unique_ptr<std::latch> first_batch;
  std::atomic<bool> asked{false}, stop{false};

  void prepare(Trainer& t);
  void train(int index);
  void one_batch(Trainer& t, int index);
  void count(const Step& step, Trainer* t) const;
  void merge_when_due(Trainer& t, int index, int64_t batch_ns);
  void keep_values(Shown values);
  void end();  // of the pass, before the stream's
  void fail(std::exception_ptr e);
  void join_meetings(int threads);
  void watch(const TrainCallbacks& callbacks);
  void report(const TrainCallbacks& callbacks);
  TrainProgress progress() const;
  std::vector<double> means(int64_t rows) const;  // after the training threads have ended
};

// The program is fed with the columns that it has; others are ignored.
void TrainLoop::Impl::prepare(Trainer& t) {
  if (t.prepared && !t.prepared->stale()) return;
  const auto slots = stream->schema().used();
  std::vector<std::string> names;
  t.columns.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!program->global_block().find_var(slots[i]->name)) continue;
    names.push_back(slots[i]->name);
    t.columns.push_back(i);
  }
  t.fed.resize(t.columns.size());
  t.prepared = std::make_unique<PreparedRun>(*t.program, names, options.fetch);
}

void TrainLoop::Impl::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  taken.notify_all();
  stream->close();
}

void TrainLoop::Impl::fail(std::exception_ptr e) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!error) error = std::move(e);
  }
  end();
}

// The threads of a half-async worker wait for each other at the end of a step: these, instead of the caller's.
void TrainLoop::Impl::join_meetings(int threads) {
  const auto worker = trainer_of(*program);
  const auto client = worker ? ps::find_client(worker->number) : nullptr;
  if (client && client->attached()) client->attached()->join(threads);
}

// Waits for the caller's thread, which may run the program itself: never called while the program is in use.
void TrainLoop::Impl::keep_values(Shown values) {
  std::unique_lock<std::mutex> lock(mutex);
  taken.wait(lock, [&] { return shown.size() < kShownAhead || stop; });
  shown.push_back(std::move(values));
  changed.notify_all();
}

// Adds the values of one step to those of the pass.
void TrainLoop::Impl::count(const Step& step, Trainer* t) const {
  const auto rows = static_cast<double>(t->batch.rows);
  for (size_t i = 0; i < t->sums.size() && rows > 0; ++i) t->sums[i] += rows * step.mean(options.averaged[i]);
  for (size_t i = 0; i < t->ranking.size(); ++i) {
    const RankedFetches& of = options.ranked[i];
    t->ranking[i].add(step.tensor(of.predict), step.tensor(of.label), of.group ? &step.tensor(*of.group) : nullptr);
  }
}

void TrainLoop::Impl::one_batch(Trainer& t, int index) {
  for (size_t i = 0; i < t.columns.size(); ++i) t.fed[i] = t.batch.columns[t.columns[i]];
  const int64_t number = t.batches.load(std::memory_order_relaxed) + 1;
  const bool due = options.show_every > 0 && number % options.show_every == 0;
  std::optional<Shown> values;
  t.prepared->run(t.fed, {}, [&](const Step& step) {
    count(step, &t);
    if (index == 0 && (due || asked.exchange(false)) && !options.fetch.empty()) values = {number, step.collect()};
  });
  if (values) keep_values(std::move(*values));
  t.batches.store(number, std::memory_order_relaxed);
  t.rows.fetch_add(t.batch.rows, std::memory_order_relaxed);
}

void TrainLoop::Impl::merge_when_due(Trainer& t, int index, int64_t batch_ns) {
  if (--t.until_merge > 0) return;
  const auto before = Clock::now();
  states->merge(index);
  const int64_t cost_ns = (Clock::now() - before).count();
  t.running_ns.fetch_add(cost_ns, std::memory_order_relaxed);
  const int64_t farthest = std::max<int64_t>(1, kApart / static_cast<int64_t>(trainers.size()));
  t.until_merge = options.merge_every > 0
                      ? options.merge_every
                      : std::clamp<int64_t>(cost_ns * kMergeShare / std::max<int64_t>(1, batch_ns), 1, farthest);
}

void TrainLoop::Impl::train(int index) {
  Trainer& t = *trainers[index];
  const RowLocks::Sharing sharing(states && states->shares_rows());
  bool first = index == 0;
  try {
    prepare(t);
    if (!first) first_batch->wait();
    while (!stop) {
      const auto before = Clock::now();
      const bool more = stream->next(&t.batch);
      if (std::exchange(first, false)) first_batch->count_down();
      if (!more) break;
      const auto begin = Clock::now();
      one_batch(t, index);
      const auto end = Clock::now();
      if (states) merge_when_due(t, index, (end - begin).count());
      t.waited_ns.fetch_add((begin - before).count(), std::memory_order_relaxed);
      t.running_ns.fetch_add((end - begin).count(), std::memory_order_relaxed);
    }
  } catch (...) {
    fail(std::current_exception());
  }
  if (first) first_batch->count_down();
  join_meetings(-1);
  for (Tensor& column : t.fed) column = Tensor();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    --running;
  }
  changed.notify_all();
}

TrainProgress TrainLoop::Impl::progress() const {
  TrainProgress p;
  for (const auto& t : trainers) {
    p.batches += t->batches.load(std::memory_order_relaxed);
    p.rows += t->rows.load(std::memory_order_relaxed);
    p.waited_s += 1e-9 * static_cast<double>(t->waited_ns.load(std::memory_order_relaxed));
    p.running_s += 1e-9 * static_cast<double>(t->running_ns.load(std::memory_order_relaxed));
  }
  p.seconds = since(begun);
  p.share_done = stream->progress();
  p.rows_expected = stream->rows_expected();
  return p;
}

std::vector<double> TrainLoop::Impl::means(int64_t rows) const {
  std::vector<double> out(options.averaged.size());
  for (const auto& t : trainers) {
    for (size_t i = 0; i < out.size(); ++i) out[i] += t->sums[i];
  }
  for (double& value : out) value /= static_cast<double>(rows);  // NaN without rows
  return out;
}

void TrainLoop::Impl::report(const TrainCallbacks& callbacks) {
  std::deque<Shown> now;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    now.swap(shown);
  }
  taken.notify_all();
  for (const Shown& s : now) {
    if (callbacks.show) callbacks.show(s.batch, s.values, progress());
  }
  if (callbacks.tick) callbacks.tick(progress());
}

void TrainLoop::Impl::watch(const TrainCallbacks& callbacks) {
  for (bool left = true; left;) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait_for(lock, kTick, [&] { return running == 0 || !shown.empty(); });
      left = running > 0;
    }
    if (stop) continue;  // it ends with an error, which the caller must get
    try {
      report(callbacks);
    } catch (...) {
      fail(std::current_exception());
    }
  }
}

TrainLoop::TrainLoop(CompiledProgram& program, const ir::ProgramRef& desc, TrainLoopOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->program = desc;
  impl_->options = std::move(options);
  impl_->trainers.push_back(std::make_unique<Impl::Trainer>());
  impl_->trainers[0]->program = &program;
}

TrainLoop::TrainLoop(const ir::ProgramRef& program, std::shared_ptr<Scope> scope, TrainLoopOptions options)
    : impl_(std::make_unique<Impl>()) {
  const int n = options.trainers;
  AB_CHECK(n >= 1 && n <= ThreadPool::kMaxWorkers, InvalidArgument,
           "the number of trainers must be from 1 to {}, got {}", ThreadPool::kMaxWorkers, n);
  impl_->program = program;
  impl_->options = std::move(options);
  impl_->states = std::make_unique<TrainerStates>(*program, std::move(scope), n);
  for (int i = 0; i < n; ++i) {
    auto& t = *impl_->trainers.emplace_back(std::make_unique<Impl::Trainer>());
    CompileOptions compile;
    compile.execution.num_threads = 1;
    t.own = std::make_unique<CompiledProgram>(program_of(program, i), impl_->states->scope(i), std::move(compile));
    t.program = t.own.get();
  }
}

TrainLoop::TrainLoop(TrainLoop&&) noexcept = default;
TrainLoop::~TrainLoop() = default;

std::vector<std::unique_ptr<RankingCounts>> TrainLoop::ranking() const {
  std::vector<std::unique_ptr<RankingCounts>> all;
  for (size_t i = 0; i < impl_->options.ranked.size(); ++i) {
    all.push_back(std::make_unique<RankingCounts>());
    for (const auto& t : impl_->trainers) {
      if (i < t->ranking.size()) all[i]->add(t->ranking[i]);
    }
  }
  return all;
}

void TrainLoop::ask_for_values() { impl_->asked = true; }

TrainProgress TrainLoop::run(data::BatchStream& stream, const TrainCallbacks& callbacks, bool go_on) {
  Impl& m = *impl_;
  m.stream = &stream;
  if (!go_on) m.begun = Clock::now();
  m.error = nullptr;
  m.shown.clear();
  m.stop = m.asked = false;
  m.running = static_cast<int>(m.trainers.size());
  m.first_batch = std::make_unique<std::latch>(1);
  for (auto& t : m.trainers) {
    if (!go_on) {
      t->batches = t->rows = t->waited_ns = t->running_ns = 0;
      t->sums.assign(m.options.averaged.size(), 0);
      t->ranking.clear();
      t->ranking.resize(m.options.ranked.size());
    }
    t->until_merge = std::max<int64_t>(1, m.options.merge_every);
  }
  if (m.states) m.states->begin();
  m.join_meetings(m.running - 1);
  Threads threads;
  try {
    threads.start(
        m.running, "trainers", [&m](int i) { m.train(i); }, [&m] { m.end(); });
  } catch (const Error&) {
    m.fail(std::current_exception());
    m.join_meetings(-m.running);
    m.running = 0;
  }
  m.watch(callbacks);
  threads.join();
  m.join_meetings(1);
  if (m.states) m.states->finish();
  TrainProgress done = m.progress();
  done.means = m.means(done.rows);
  for (auto& t : m.trainers) t->batch = data::Batch();
  m.stream = nullptr;
  if (m.error) std::rethrow_exception(std::exchange(m.error, nullptr));
  return done;
}

}  // namespace anabranch
