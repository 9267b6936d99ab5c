#include "sim/files.h"

#include <algorithm>

#include "sim/plan.h"
#include "sim/worker_client.h"

namespace anabranch::ps::sim {
namespace {

constexpr auto kLimit = std::chrono::hours(8);
constexpr Milliseconds kLease(60000);

}  // namespace

FilePlan file_plan_of(uint64_t seed) {
  World world(seed);
  FilePlan p;
  p.seed = seed;
  p.durability = world.chance(50) ? Durability::kJournal : Durability::kFlushed;
  p.workers = world.pick(1, 4);
  p.files = world.pick(1, 12);
  p.snapshot_every = world.pick(1, 8);
  if (world.chance(70)) p.faults = {world.pick(0, 20), world.pick(0, 20), world.pick(0, 20)};
  p.server_crashes = world.pick(0, 3);
  p.worker_crashes = world.pick(0, 3);
  p.deaths = world.pick(0, p.workers - 1);
  (world.chance(50) ? p.cut : p.jump) = world.chance(50);
  p.replicas = replicas_of(seed).count;
  return p;
}

std::string FilePlan::text() const {
  return fmt::format(
      "seed {}: L{}, {} workers, {} files, snapshots every {}; lost {} %, twice {} %, late {} %; {} + {} "
      "crashes, {} deaths{}{}, {} replicas",
      seed, static_cast<int>(durability) - 1, workers, files, snapshot_every, faults.lost, faults.twice, faults.late,
      server_crashes, worker_crashes, deaths, cut ? ", a cut" : "", jump ? ", a jump" : "", replicas);
}

struct FileRun::Node final : ServerNode {
  using ServerNode::ServerNode;
  std::unique_ptr<Store> make_store() override { return std::make_unique<DefectiveStore>(options().planted); }
};

struct FileRun::Worker {
  std::shared_ptr<Client> client;
  std::shared_ptr<Beats> beats;
  std::shared_ptr<bool> alive;
  uint64_t life = 0;
  std::vector<int64_t> has;  // by replica: a file, or -1
  int over = 0;              // replicas that get no more
  bool done = false, gone = false;
};

FileRun::FileRun(const FilePlan& plan, Planted planted)
    : plan_(plan), planted_(planted), world_(plan.seed * 0x9e3779b97f4a7c15u), network_(world_, plan.faults) {
  plant(planted, world_, &network_);
  ServerNode::Options o;
  o.trainers = plan.workers;
  o.snapshot_every = plan.snapshot_every;
  o.durability = plan.durability;
  o.planted = planted;
  o.file_lease = planted == Planted::kTheDeadKeepTheirFiles ? Milliseconds(std::chrono::hours(24)) : kLease;
  server_ = std::make_unique<Node>(world_, network_, 0, o);
  for (int i = 0; i < plan.files; ++i) names_.push_back(fmt::format("file {}", i));
  times_.resize(names_.size());
  known_.resize(names_.size());
}

FileRun::~FileRun() = default;

void FileRun::fail(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

void FileRun::start(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (network_.doors.empty()) {
    world_.after(Milliseconds(100), [this, w, life = me.life] {
      if (workers_[static_cast<size_t>(w)]->life == life) start(w);
    });
    return;
  }
  const auto alive = me.alive = std::make_shared<bool>(true);
  me.client = worker_client(world_, network_, w, ++me.life, alive);
  network_.at_once = true;
  me.client->connect(server_->endpoint());
  network_.at_once = false;
  me.has.assign(static_cast<size_t>(plan_.replicas), -1);
  me.over = 0;
  say({w, 0}, offer_files("queue", names_), &FileRun::after_offer);
}

// Messages to a worker that was killed meanwhile are lost.
void FileRun::say(Replica r, std::shared_ptr<Message> what, Then then) {
  of(r).client->send(server_->endpoint(), std::move(what), [this, r, then, life = of(r).life](const MessageRef& m) {
    if (of(r).life != life) return;
    if (m->header().error) return fail(fmt::format("worker {} hears: {}", r.worker, m->text(0)));
    (this->*then)(r, *m);
  });
}

template <class Fn> void FileRun::later(Replica r, Milliseconds delay, Fn&& fn) {
  world_.after(delay, [this, r, fn = std::forward<Fn>(fn), life = of(r).life] {
    if (of(r).life == life) fn();
  });
}

void FileRun::after_offer(Replica first, const Message& answer) {
  Worker& me = of(first);
  if (planted_ != Planted::kBeatsDoNotCome) {
    me.beats = me.client->beats(server_->endpoint(), Milliseconds(answer.needed(0)[0]));
  }
  for (int number = 0; number < plan_.replicas; ++number) take({first.worker, number});
}

void FileRun::take(Replica r) { say(r, take_file("queue"), &FileRun::taken); }

// A worker is done when none of its replicas gets another file.
void FileRun::taken(Replica r, const Message& answer) {
  if (answer.parts() == 2) return train(r, answer.ids(0)[0]);
  if (answer.header().flags & Header::kOver) {
    if (++of(r).over == plan_.replicas) say(r, std::make_shared<Message>(Verb::kComplete), &FileRun::completed);
    return;
  }
  later(r, Milliseconds(500), [this, r] { take(r); });
}

void FileRun::train(Replica r, int64_t file) {
  for (const auto& other : workers_) {
    if (std::find(other->has.begin(), other->has.end(), file) == other->has.end()) continue;
    fail(fmt::format("two replicas that live have file {}, one of them is of worker {}", file, r.worker));
  }
  if (known_[static_cast<size_t>(file)]) fail(fmt::format("worker {} gets file {}, which is done", r.worker, file));
  of(r).has[static_cast<size_t>(r.number)] = file;
  later(r, world_.within(500, 100000), [this, r, file] {
    ++times_[static_cast<size_t>(file)];
    ++trained_;
    say(r, end_file("queue", file, true), &FileRun::ended);
  });
}

void FileRun::ended(Replica r, const Message& answer) {
  const int64_t file = std::exchange(of(r).has[static_cast<size_t>(r.number)], -1);
  if (!(answer.header().flags & Header::kTrained)) {
    fail(fmt::format("worker {} lives and has lost file {}", r.worker, file));
  }
  known_[static_cast<size_t>(file)] = true;
  take(r);
}

void FileRun::completed(Replica r, const Message&) {
  of(r).done = true;
  of(r).beats.reset();
}

void FileRun::kill(int w, bool for_good) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.done || me.gone || !me.client) return;
  *me.alive = false;
  me.beats.reset();
  dead_.push_back(std::move(me.client));
  interrupted_ += static_cast<int>(std::count_if(me.has.begin(), me.has.end(), [](int64_t f) { return f >= 0; }));
  me.has.clear();
  me.gone = for_good;
  ++me.life;
  if (for_good) return;
  world_.after(world_.within(10, 100000), [this, w, life = me.life] {
    if (workers_[static_cast<size_t>(w)]->life == life) start(w);
  });
}

void FileRun::plan_faults() {
  const auto some_time = [this] { return world_.within(20, 60000 * plan_.files / plan_.workers); };
  for (int i = 0; i < plan_.server_crashes; ++i) world_.after(some_time(), [this] { server_->kill(); });
  for (int i = 0; i < plan_.worker_crashes; ++i) {
    world_.after(some_time(), [this, w = world_.pick(0, plan_.workers - 1)] { kill(w, false); });
  }
  for (int i = 0; i < plan_.deaths; ++i) {
    world_.after(some_time(), [this, i] { kill(i, true); });
  }
  if (plan_.jump) world_.after(some_time(), [this] { world_.jump(world_.within(1000, 20000)); });
  if (!plan_.cut) return;
  const std::pair between(static_cast<uint32_t>(world_.pick(0, plan_.workers - 1)), server_->endpoint());
  world_.after(some_time(), [this, between] {
    network_.cut.insert(between);
    world_.after(world_.within(100, 20000), [this, between] { network_.cut.erase(between); });
  });
}

bool FileRun::over() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->done || w->gone; });
}

std::string FileRun::run() {
  server_->start();
  for (int w = 0; w < plan_.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    start(w);
  }
  plan_faults();
  const bool ended = world_.run([this] { return !wrong_.empty() || server_->failed() || over(); }, kLimit);
  if (server_->failed()) fail(server_->wrong());
  if (!ended) fail("it hangs");
  const auto missing = std::find(times_.begin(), times_.end(), 0);
  if (missing != times_.end()) fail(fmt::format("file {} was not trained", missing - times_.begin()));
  crashes_ = server_->crashes();
  return wrong_;
}

}  // namespace anabranch::ps::sim
