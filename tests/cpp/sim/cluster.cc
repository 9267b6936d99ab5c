#include "sim/cluster.h"

#include <algorithm>

#include "sim/worker_client.h"

namespace anabranch::ps::sim {
namespace {

constexpr auto kLimit = std::chrono::minutes(30);
constexpr int kMostSteps = 25;  // of a replica

}  // namespace

struct ClusterRun::ToyNode final : ServerNode {
  using ServerNode::ServerNode;
  std::unique_ptr<Store> make_store() override {
    auto made = std::make_unique<DefectiveStore>(options().planted);
    store = made.get();
    return made;
  }
  DefectiveStore* store = nullptr;      // of the server that runs
  int64_t acknowledged = 0, maybe = 0;  // gradients of all replicas
};

struct ClusterRun::Worker {
  // All replicas that push together, or one.
  struct Sender {
    int steps = 0;
    bool under_way = false;
  };

  std::shared_ptr<Client> client;
  std::vector<Remote> remotes, tables;
  uint64_t life = 0;
  std::shared_ptr<bool> alive;
  std::vector<Sender> senders;
  int least_steps = 0;
  bool ends = false, done = false;
  int completed = 0;  // servers that know that it is done

  bool in_last_step() const {
    return std::all_of(senders.begin(), senders.end(), [this](const Sender& s) { return s.steps >= least_steps; });
  }
  bool trained() const {
    return in_last_step() && std::none_of(senders.begin(), senders.end(), [](const Sender& s) { return s.under_way; });
  }
};

ClusterRun::ClusterRun(const Plan& plan, Planted planted)
    : plan_(plan), planted_(planted), world_(plan.seed * 0x9e3779b97f4a7c15u), network_(world_, plan.faults) {
  plant(planted, world_, &network_);
  ServerNode::Options o;
  o.mode = plan.mode;
  o.trainers = plan.workers;
  o.snapshot_every = plan.snapshot_every;
  o.durability = plan.durability;
  if (plan.one_without_journal) o.tables["b"] = Durability::kSnapshot;
  o.planted = planted;
  for (int s = 0; s < plan.servers; ++s) {
    servers_.push_back(std::make_unique<ToyNode>(world_, network_, s, o));
  }
}

ClusterRun::~ClusterRun() = default;

void ClusterRun::start_worker(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (network_.doors.size() < servers_.size()) {
    world_.after(Milliseconds(100), [this, w, life = me.life] {
      if (workers_[static_cast<size_t>(w)]->life == life) start_worker(w);
    });
    return;
  }
  const auto alive = me.alive = std::make_shared<bool>(true);
  me.client = worker_client(world_, network_, w, ++me.life, alive);
  network_.at_once = true;
  me.remotes.clear();
  me.tables.clear();
  for (const auto& s : servers_) {
    for (int v = 0; v < kVariables; ++v) {
      me.remotes.push_back(me.client->remote(s->endpoint(), std::string(1, static_cast<char>('a' + v))));
    }
    me.tables.push_back(me.client->remote(s->endpoint(), "t"));
  }
  network_.at_once = false;
  for (int sender = 0; sender < senders(); ++sender) begin_step(w, sender, Milliseconds(1), Milliseconds(50));
}

void ClusterRun::kill_worker(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.done || !me.client || me.in_last_step()) return;
  for (auto& sender : me.senders) {
    if (!std::exchange(sender.under_way, false)) continue;
    for (auto& s : servers_) s->maybe += share();
  }
  *me.alive = false;
  dead_.push_back(std::move(me.client));
  ++me.life;
  world_.after(world_.within(10, 2000), [this, w, life = me.life] {
    if (workers_[static_cast<size_t>(w)]->life == life) start_worker(w);
  });
}

// The slowest of the replicas that push together decides.
void ClusterRun::begin_step(int w, int sender, Milliseconds least, Milliseconds most) {
  Milliseconds pause{0};
  for (int r = 0; r < share(); ++r) {
    pause = std::max(pause, world_.within(static_cast<int>(least.count()), static_cast<int>(most.count())));
  }
  const uint64_t life = workers_[static_cast<size_t>(w)]->life;
  world_.after(pause, [this, w, sender, life] { step(w, sender, life); });
}

void ClusterRun::step(int w, int sender, uint64_t life) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.life != life || me.done) return;
  Worker::Sender& s = me.senders[static_cast<size_t>(sender)];
  if (s.steps >= me.least_steps) {
    if (me.trained() && !std::exchange(me.ends, true)) complete(w, life);
    return;
  }
  ++s.steps;
  s.under_way = true;
  const auto done = [this, w, sender, life](const std::exception_ptr& e) { stepped(w, sender, life, e); };
  if (plan_.together) {
    push(me.client.get(), w, sender);
    return me.client->exchange(done);
  }
  auto own = std::make_shared<Client::Batch>(*me.client);
  const bool shares = planted_ == Planted::kReplicasShareMessages;
  shares ? push(me.client.get(), w, sender) : push(own.get(), w, sender);
  world_.after(world_.within(0, 5), [this, w, life, own, done, shares] {  // others push meanwhile
    Worker& now = *workers_[static_cast<size_t>(w)];
    if (now.life == life) shares ? now.client->exchange(done) : own->exchange(done);
  });
}

template <class Pushes> void ClusterRun::push(Pushes* into, int w, int sender) {
  const Worker& me = *workers_[static_cast<size_t>(w)];
  const Tensor all = filled(static_cast<float>(-share()));
  for (const Remote& r : me.remotes) into->push(r, all);
  std::vector<int64_t> keys;
  for (int r = sender; r < sender + share(); ++r) {
    const auto of_replica = CountingTable::keys_of(w, r * kMostSteps + me.senders[static_cast<size_t>(sender)].steps);
    keys.insert(keys.end(), of_replica.begin(), of_replica.end());
  }
  const std::vector<float> ones(keys.size(), -1.0F);
  for (const Remote& t : me.tables) into->push(t, {keys, Part::kAnyHeight, ones.data(), DType::kFloat32, 1});
}

void ClusterRun::stepped(int w, int sender, uint64_t life, const std::exception_ptr& error) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.life != life) return;
  me.senders[static_cast<size_t>(sender)].under_way = false;
  for (auto& s : servers_) (error ? s->maybe : s->acknowledged) += share();
  if (error && !plan_.full_disks) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      // A sync step that was lost with the server after some workers had its acknowledgement and others had not:
      // they do not agree on where they are, and those that wait are notified in time.
      const bool step_was_lost = plan_.durability == Durability::kSnapshot && plan_.mode == Mode::kSync &&
                                 e.message().find("of sync training") != std::string::npos;
      if (!step_was_lost)
        wrong_ = fmt::format("worker {} hears in step {}: {}", w, me.senders[static_cast<size_t>(sender)].steps,
                             e.message());
    }
  }
  begin_step(w, sender, Milliseconds(1), Milliseconds(40));
}

void ClusterRun::complete(int w, uint64_t life) {
  for (int s = 0; s < plan_.servers; ++s) complete_at(w, s, life);
}

void ClusterRun::complete_at(int w, int s, uint64_t life) {
  const Remote& r = workers_[static_cast<size_t>(w)]->remotes[static_cast<size_t>(s) * kVariables];
  r.link->send(std::make_shared<Message>(Verb::kComplete), true, [this, w, s, life](const MessageRef& m) {
    Worker& me = *workers_[static_cast<size_t>(w)];
    if (me.life != life) return;
    if (!m->header().error) {
      me.done = ++me.completed == plan_.servers;
    } else if (plan_.full_disks) {
      world_.after(Milliseconds(500), [this, w, s, life] {
        if (workers_[static_cast<size_t>(w)]->life == life) complete_at(w, s, life);
      });
    } else {
      wrong_ = fmt::format("worker {} cannot end: {}", w, m->text(0));
    }
  });
}

void ClusterRun::plan_faults() {
  const auto some_time = [this] { return world_.within(20, 100 + 60 * plan_.steps); };
  const auto server = [this] { return world_.pick(0, plan_.servers - 1); };
  const auto worker = [this] { return world_.pick(0, plan_.workers - 1); };
  for (int i = 0; i < plan_.server_crashes; ++i) {
    world_.after(some_time(), [this, s = server()] { servers_[static_cast<size_t>(s)]->kill(); });
  }
  for (int i = 0; i < plan_.worker_crashes; ++i) {
    world_.after(some_time(), [this, w = worker()] { kill_worker(w); });
  }
  for (int i = 0; i < plan_.cuts; ++i) {
    const std::pair between(static_cast<uint32_t>(worker()), servers_[static_cast<size_t>(server())]->endpoint());
    world_.after(some_time(), [this, between] {
      network_.cut.insert(between);
      world_.after(world_.within(100, 20000), [this, between] { network_.cut.erase(between); });
    });
  }
  for (int i = 0; i < plan_.jumps; ++i) {
    world_.after(some_time(), [this] { world_.jump(world_.within(1000, 20000)); });
  }
  for (int i = 0; i < plan_.full_disks; ++i) {
    world_.after(some_time(), [this, s = server()] {
      servers_[static_cast<size_t>(s)]->disk().full = true;
      world_.after(world_.within(100, 4000), [this, s] { servers_[static_cast<size_t>(s)]->disk().full = false; });
    });
  }
}

void ClusterRun::tick() {
  for (auto& s : servers_) {
    if (s->server()) s->server()->tick();
  }
  world_.after(Milliseconds(5000), [this] { tick(); });
}

bool ClusterRun::all_done() const {
  const auto done = [](const auto& w) { return w->done; };
  const auto runs = [](const auto& s) { return s->server() != nullptr; };
  return std::all_of(workers_.begin(), workers_.end(), done) && std::all_of(servers_.begin(), servers_.end(), runs);
}

std::string ClusterRun::run() {
  for (auto& s : servers_) s->start();
  for (int w = 0; w < plan_.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->senders.resize(static_cast<size_t>(senders()));
    workers_.back()->least_steps = plan_.steps + w;
    start_worker(w);
  }
  plan_faults();
  tick();
  const bool ended = world_.run([this] { return any_wrong() || all_done(); }, kLimit);
  for (auto& s : servers_) {
    if (wrong_.empty()) wrong_ = s->wrong();
    crashes_ += s->crashes();
  }
  if (wrong_.empty() && !ended) wrong_ = "it hangs";
  if (wrong_.empty()) wrong_ = check();
  return wrong_;
}

bool ClusterRun::any_wrong() const {
  return !wrong_.empty() || std::any_of(servers_.begin(), servers_.end(), [](const auto& s) { return s->failed(); });
}

std::string ClusterRun::check() {
  for (const auto& s : servers_) {
    const int64_t lost = s->lost() * share();
    lost_ += lost;
    applied_ += static_cast<int64_t>(s->store->value(0, 0));
    if (lost != 0 && plan_.durability != Durability::kSnapshot && !plan_.one_without_journal) {
      return fmt::format("{} reports {} lost updates", s->endpoint(), s->lost());
    }
    for (int v = 0; v < kVariables; ++v) {
      const bool may_lose = v == 1 || !plan_.one_without_journal;
      const std::string wrong = check_variable(*s, v, may_lose ? lost : 0);
      if (!wrong.empty()) return wrong;
    }
    if (const auto wrong = s->store->table().check(static_cast<int64_t>(s->store->value(0, 0))); !wrong.empty()) {
      return fmt::format("{}: {}", s->endpoint(), wrong);
    }
    // Variables that survive the same things agree.
    if (!plan_.one_without_journal && s->store->value(0, 0) != s->store->value(1, 0)) {
      return fmt::format("{}: torn, {} and {}", s->endpoint(), s->store->value(0, 0), s->store->value(1, 0));
    }
    if (!s->server()->finished()) return fmt::format("{} does not know that all workers are done", s->endpoint());
  }
  return "";
}

std::string ClusterRun::check_variable(const ToyNode& s, int v, int64_t lost) const {
  const float value = s.store->value(v, 0);
  for (int i = 1; i < 4; ++i) {
    if (s.store->value(v, i) != value) {
      return fmt::format("{}: torn, {} and {}", s.endpoint(), value, s.store->value(v, i));
    }
  }
  const int64_t applied = static_cast<int64_t>(value);
  if (applied % share() != 0) {
    return fmt::format("{}: {} gradients are there, from {} replicas that push together", s.endpoint(), applied,
                       share());
  }
  if (applied + lost < s.acknowledged || applied + lost > s.acknowledged + s.maybe) {
    return fmt::format(
        "{}: {} gradients are there and {} were reported lost, {} were acknowledged, {} more may be there",
        s.endpoint(), applied, lost, s.acknowledged, s.maybe);
  }
  return "";
}

}  // namespace anabranch::ps::sim
