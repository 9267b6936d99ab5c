#include "sim/cluster.h"

#include <algorithm>

namespace anabranch::ps::sim {
namespace {

constexpr auto kLimit = std::chrono::minutes(30);

}  // namespace

struct ClusterRun::ServerNode {
  ServerNode(World& world) : disk(world) {}
  std::string endpoint;
  SimDisk disk;
  std::unique_ptr<DefectiveStore> store;
  std::unique_ptr<Server> server;
  uint64_t starts = 0;
  int64_t lost = 0;                     // as servers that are gone have counted it
  int64_t acknowledged = 0, maybe = 0;  // pushes of all workers
};

struct ClusterRun::Worker {
  std::shared_ptr<Client> client;
  std::vector<Remote> remotes;
  uint64_t life = 0;
  std::shared_ptr<bool> alive;
  int steps = 0;
  bool under_way = false, done = false;
  int completed = 0;  // servers that know that it is done
};

ClusterRun::ClusterRun(const Plan& plan, Planted planted)
    : plan_(plan), planted_(planted), world_(plan.seed * 0x9e3779b97f4a7c15u), network_(world_, plan.faults) {
  for (int s = 0; s < plan.servers; ++s) {
    servers_.push_back(std::make_unique<ServerNode>(world_));
    ServerNode& n = *servers_.back();
    n.endpoint = fmt::format("sim:{}", s);
    n.disk.ignores_sync = planted == Planted::kSyncDoesNothing;
    n.disk.ignores_sync_folder = planted == Planted::kFolderSyncDoesNothing;
  }
  if (planted == Planted::kRequestsLoseTheirNumber) {
    network_.spoil_request = [](Message& m) { m.header().sequence = 0; };
  }
  if (planted == Planted::kAcknowledgedBeforeItCame) {
    network_.answer_for = [this](const Message& m) -> MessageRef {
      if (m.header().verb != Verb::kExchange || !world_.chance(3)) return nullptr;
      auto answer = std::make_shared<Message>(Verb::kExchange);
      answer->header().round = m.header().round + 1;
      return answer;
    };
  }
}

ClusterRun::~ClusterRun() = default;

void ClusterRun::start_server(int s) {
  ServerNode& n = *servers_[static_cast<size_t>(s)];
  ServerOptions o;
  o.name = n.endpoint;
  o.mode = plan_.mode;
  o.trainers = plan_.workers;
  o.clock = &world_;
  o.patience = Milliseconds(120000);
  o.incarnation = planted_ == Planted::kIncarnationStays ? 1 : 1 + n.starts;
  ++n.starts;
  o.history = {plan_.durability, "state", plan_.snapshot_every, &n.disk, [](const std::string&) {}};
  n.store = std::make_unique<DefectiveStore>(planted_);
  try {
    n.server = std::make_unique<DefectiveServer>(o, *n.store, planted_);
  } catch (const Error& e) {
    if (!n.disk.full) {
      wrong_ = fmt::format("{} does not start: {}", n.endpoint, e.message());
    } else {
      world_.after(Milliseconds(2000), [this, s] { start_server(s); });
    }
    return;
  }
  network_.doors[n.endpoint] = std::make_shared<Handler>(
      [server = n.server.get()](MessageRef m, Answer a) { server->handle(std::move(m), std::move(a)); });
}

void ClusterRun::kill_server(int s) {
  ServerNode& n = *servers_[static_cast<size_t>(s)];
  if (!network_.doors.erase(n.endpoint)) return;
  ++crashes_;
  n.lost += n.server->stats().lost;
  n.server.reset();
  n.store.reset();
  if (plan_.durability == Durability::kFlushed && world_.chance(70)) n.disk.lose_power();
  world_.after(world_.within(10, 3000), [this, s] { start_server(s); });
}

void ClusterRun::start_worker(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (network_.doors.size() < servers_.size()) {
    world_.after(Milliseconds(100), [this, w, life = me.life] {
      if (workers_[static_cast<size_t>(w)]->life == life) start_worker(w);
    });
    return;
  }
  const auto alive = me.alive = std::make_shared<bool>(true);
  LinkOptions o;
  o.trainer = static_cast<uint32_t>(w);
  o.incarnation = 100 + static_cast<uint64_t>(w) * 1000 + ++me.life;
  o.deadline = Milliseconds(600000);
  o.try_for = Milliseconds(5000);
  o.clock = &world_;
  me.client = std::make_shared<Client>(
      o, [this, w, alive](const std::string& e) { return network_.connect(static_cast<uint32_t>(w), e, alive); },
      std::shared_ptr<Timer>(std::shared_ptr<void>(), &world_));
  network_.at_once = true;
  me.remotes.clear();
  for (const auto& s : servers_) {
    for (int v = 0; v < kVariables; ++v) {
      me.remotes.push_back(me.client->remote(s->endpoint, std::string(1, static_cast<char>('a' + v))));
    }
  }
  network_.at_once = false;
  world_.after(world_.within(1, 50), [this, w, life = me.life] { step(w, life); });
}

void ClusterRun::kill_worker(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.done || !me.client || me.steps >= plan_.steps + w) return;
  if (std::exchange(me.under_way, false)) {
    for (auto& s : servers_) ++s->maybe;
  }
  *me.alive = false;
  dead_.push_back(std::move(me.client));
  ++me.life;
  world_.after(world_.within(10, 2000), [this, w, life = me.life] {
    if (workers_[static_cast<size_t>(w)]->life == life) start_worker(w);
  });
}

void ClusterRun::step(int w, uint64_t life) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.life != life || me.done) return;
  if (me.steps >= plan_.steps + w) return complete(w, life);
  ++me.steps;
  const Tensor one = filled(-1);
  for (const Remote& r : me.remotes) me.client->push(r, one);
  me.under_way = true;
  me.client->exchange([this, w, life](const std::exception_ptr& e) { stepped(w, life, e); });
}

void ClusterRun::stepped(int w, uint64_t life, const std::exception_ptr& error) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.life != life) return;
  me.under_way = false;
  for (auto& s : servers_) ++(error ? s->maybe : s->acknowledged);
  if (error && !plan_.full_disks) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      // A sync step that was lost with the server after some workers had heard that it is done, and others had not:
      // they do not agree on where they are, and those that wait hear so in time.
      const bool step_was_lost = plan_.durability == Durability::kSnapshot && plan_.mode == Mode::kSync &&
                                 e.message().find("of sync training") != std::string::npos;
      if (!step_was_lost) wrong_ = fmt::format("worker {} hears in step {}: {}", w, me.steps, e.message());
    }
  }
  world_.after(world_.within(1, 40), [this, w, life] { step(w, life); });
}

void ClusterRun::complete(int w, uint64_t life) {
  for (int s = 0; s < plan_.servers; ++s) complete_at(w, s, life);
}

void ClusterRun::complete_at(int w, int s, uint64_t life) {
  const Remote& r = workers_[static_cast<size_t>(w)]->remotes[static_cast<size_t>(s * kVariables)];
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
    world_.after(some_time(), [this, s = server()] { kill_server(s); });
  }
  for (int i = 0; i < plan_.worker_crashes; ++i) {
    world_.after(some_time(), [this, w = worker()] { kill_worker(w); });
  }
  for (int i = 0; i < plan_.cuts; ++i) {
    const std::pair between(static_cast<uint32_t>(worker()), servers_[static_cast<size_t>(server())]->endpoint);
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
      servers_[static_cast<size_t>(s)]->disk.full = true;
      world_.after(world_.within(100, 4000), [this, s] { servers_[static_cast<size_t>(s)]->disk.full = false; });
    });
  }
}

void ClusterRun::tick() {
  for (auto& s : servers_) {
    if (s->server) s->server->tick();
  }
  world_.after(Milliseconds(5000), [this] { tick(); });
}

bool ClusterRun::all_done() const {
  const auto done = [](const auto& w) { return w->done; };
  const auto runs = [](const auto& s) { return s->server != nullptr; };
  return std::all_of(workers_.begin(), workers_.end(), done) && std::all_of(servers_.begin(), servers_.end(), runs);
}

std::string ClusterRun::run() {
  for (int s = 0; s < plan_.servers; ++s) start_server(s);
  for (int w = 0; w < plan_.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    start_worker(w);
  }
  plan_faults();
  tick();
  const bool ended = world_.run([this] { return !wrong_.empty() || all_done(); }, kLimit);
  if (wrong_.empty() && !ended) wrong_ = "it hangs";
  if (wrong_.empty()) wrong_ = check();
  return wrong_;
}

std::string ClusterRun::check() {
  for (const auto& s : servers_) {
    const float value = s->store->value(0, 0);
    for (int v = 0; v < kVariables; ++v) {
      for (int i = 0; i < 4; ++i) {
        if (s->store->value(v, i) != value)
          return fmt::format("{}: torn, {} and {}", s->endpoint, value, s->store->value(v, i));
      }
    }
    const int64_t applied = static_cast<int64_t>(value);
    const int64_t lost = planted_ == Planted::kLossIsNotCounted ? 0 : s->lost + s->server->stats().lost;
    lost_ += lost;
    applied_ += applied;
    if (lost != 0 && plan_.durability != Durability::kSnapshot) {
      return fmt::format("{} reports {} lost updates", s->endpoint, lost);
    }
    if (applied + lost < s->acknowledged || applied + lost > s->acknowledged + s->maybe) {
      return fmt::format(
          "{}: {} updates are there and {} were reported lost, {} were acknowledged, {} more may be there", s->endpoint,
          applied, lost, s->acknowledged, s->maybe);
    }
    if (!s->server->finished()) return fmt::format("{} does not know that all workers are done", s->endpoint);
  }
  return "";
}

}  // namespace anabranch::ps::sim
