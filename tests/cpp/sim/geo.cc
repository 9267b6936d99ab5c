#include "sim/geo.h"

#include <algorithm>
#include <set>

#include "base/run_gate.h"
#include "sim/adding_store.h"
#include "sim/worker_client.h"
#include "sparse/hash.h"

namespace anabranch::ps::sim {
namespace {

constexpr auto kLimit = std::chrono::minutes(30);
constexpr int kSums = 3;  // of each worker
}  // namespace

struct GeoRun::Node final : ServerNode {
  using ServerNode::ServerNode;
  std::unique_ptr<Store> make_store() override {
    auto made = std::make_unique<AddingStore>(options().planted, rules);
    store = made.get();
    return made;
  }
  AddingStore* store = nullptr;
  GrownRules rules;
};

struct GeoRun::Worker {
  std::shared_ptr<Client> client;
  std::shared_ptr<Value> a, t, g;
  std::shared_ptr<sparse::GrowableTable> table() const { return sparse::GrowableTable::of(*g); }
  std::unique_ptr<Geo> geo;
  int steps = 0, sums = 0, completed = 0;
  bool ends = false;  // the last exchange has begun
  // By server and number: all that was learned, all that was sent.
  std::vector<Numbers> learned, sent;
  std::vector<double> shows;                        // sent to each server
  std::set<std::pair<std::string, uint64_t>> seen;  // messages
};

GeoRun::GeoRun(const GeoPlan& plan, Planted planted)
    : plan_(plan), planted_(planted), world_(plan.seed * 0x9e3779b97f4a7c15u + 1), network_(world_, plan.faults) {
  plant(planted, world_, &network_);
  if (planted == Planted::kSumsForgetOne) {
    network_.spoil_request = [](Message& m) {
      if (m.header().verb == Verb::kReduce && m.header().client == 1) m.header().client = 0;
    };
  }
  network_.saw = [this](const Message& m, const std::string& endpoint) { note_sent(m, endpoint); };
  ServerNode::Options o;
  o.mode = Mode::kGeo;
  o.trainers = plan.workers;
  o.snapshot_every = plan.snapshot_every;
  o.durability = plan.durability;
  o.planted = planted;
  for (int s = 0; s < plan.servers; ++s) {
    servers_.push_back(std::make_unique<Node>(world_, network_, s, o));
    servers_.back()->rules = plan.rules;
  }
}

GeoRun::~GeoRun() = default;

void GeoRun::fail(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

void GeoRun::begin(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  me.client = worker_client(world_, network_, w);
  me.a = std::make_shared<Value>(std::make_shared<RunGate>());
  me.t = std::make_shared<Value>(me.a->gate());
  me.a->as<Tensor>() = zeros(Shape{kDense * plan_.servers});
  me.t->as<Tensor>() = zeros(Shape{kRows * plan_.servers, 1});
  me.learned.assign(servers_.size(), Numbers(kNumbers));
  me.sent = me.learned;
  me.shows.assign(servers_.size(), 0);
  me.g = std::make_shared<Value>(me.a->gate());
  sparse::GrowableTable::put(me.g.get(), std::make_shared<sparse::GrowableTable>("g", GrownTable::copy_options()));
  std::vector<GeoVariable> variables{{"a", me.a, false, {}}, {"t", me.t, true, {}}, {"g", me.g, true, {}}};
  network_.at_once = true;
  for (GeoVariable& v : variables) {
    for (const auto& s : servers_) {
      v.shards.push_back({me.client->remote(s->endpoint(), v.name + ".delta"), me.client->remote(s->endpoint(), v.name),
                          v.name == "g" ? kUnknown
                          : v.sparse    ? kRows
                                        : kDense});
    }
  }
  network_.at_once = false;
  me.geo = std::make_unique<Geo>(*me.client, GeoOptions{plan_.workers, int64_t{plan_.every} * plan_.replicas, false},
                                 std::move(variables));
  me.geo->begin();
  world_.after(world_.within(1, 50), [this, w] { step(w); });
  for (int r = 1; r < plan_.replicas; ++r) train_replica(w);
}

// Replicas but the first one train at their own pace, also while messages are under way.
void GeoRun::train_replica(int w) {
  world_.after(world_.within(1, 50), [this, w] {
    Worker& me = *workers_[static_cast<size_t>(w)];
    if (trained(me)) return;
    train(me, 1);
    train_replica(w);
  });
}

bool GeoRun::trained(const Worker& me) const { return me.steps >= plan_.steps * plan_.replicas; }

void GeoRun::train(Worker& me, int steps) {
  for (; steps > 0; --steps) {
    ++me.steps;
    for (size_t s = 0; s < servers_.size(); ++s) {
      const auto server = static_cast<int64_t>(s);
      for (int64_t i = 0; i < kDense; ++i) {
        me.a->as<Tensor>().mutable_data<double>()[server * kDense + i] += 1;
        me.learned[s][static_cast<size_t>(i)] += 1;
      }
      const int64_t row = world_.pick(0, kRows - 1), id = server * kRows + row;
      me.t->as<Tensor>().mutable_data<double>()[id] += 1;
      me.learned[s][static_cast<size_t>(kDense + row)] += 1;
      me.geo->note("t", std::span(&id, 1));
    }
    learn_keys(me);
    me.geo->end_local_step();
  }
}

// Each step trains keys that all steps share, and one that comes twice.
void GeoRun::learn_keys(Worker& me) {
  std::vector<int64_t> keys{me.steps % 3, 10 + me.steps % 5, 100 + me.steps / 2};
  const std::vector<float> gradients = [&] {
    std::vector<float> out;
    for (size_t i = 0; i < keys.size(); ++i) out.insert(out.end(), {1, 0, -0.25F});
    return out;
  }();
  sparse::RecordUpdate how;
  how.rule = sparse::RowRule::kSgd;
  how.rate = 1;
  sparse::GrowableTable::Scratch scratch;
  me.table()->update(keys.data(), static_cast<int64_t>(keys.size()), gradients.data(), how, &scratch, nullptr);
}

void GeoRun::step(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (!trained(me)) train(me, 1);
  // The last exchanges come one after the other, so that the last worker sees what all others have sent.
  if (trained(me) && !me.geo->due() && me.sums < kSums) return add_up(w);
  me.ends = trained(me) && me.sums == kSums && ended_ == w;
  if (me.ends || me.geo->due()) return exchange(w);
  world_.after(world_.within(1, 40), [this, w] { step(w); });
}

void GeoRun::exchange(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  ++exchanges_;
  me.geo->begin_exchange([this, w](const std::exception_ptr& e) { exchanged(w, e); });
  // Updates learned while messages are under way are in the next difference.
  if (!trained(me) && world_.chance(50)) train(me, 1);
}

void GeoRun::exchanged(int w, const std::exception_ptr& error) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  try {
    if (error) std::rethrow_exception(error);
    me.geo->end_exchange();
  } catch (const Error& e) {
    return fail(fmt::format("worker {} hears in step {}: {}", w, me.steps, e.message()));
  }
  if (me.ends) ++ended_;
  me.ends ? complete(w) : me.sums < kSums ? add_up(w) : step(w);
}

// All workers have the same number of sums: each adds its power of two, so that the sum shows how often it was in it.
void GeoRun::add_up(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  ++me.sums;
  const Tensor mine = filled(static_cast<float>(1 << w), 2);
  me.client->reduce(servers_[0]->endpoint(), "rows", &mine, [this, w](const MessageRef& m) {
    const float all = static_cast<float>((1 << plan_.workers) - 1);
    if (m->header().error || m->parts() != 1) return fail(fmt::format("worker {} gets no sum: {}", w, m->text(0)));
    const Tensor sum = Message::tensor(m, 0);
    if (sum.data<float>()[0] != all || sum.data<float>()[1] != all) {
      return fail(fmt::format("worker {} gets the sum {}, it is {}", w, sum.data<float>()[0], all));
    }
    world_.after(world_.within(1, 40), [this, w] { step(w); });
  });
}

void GeoRun::complete(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  for (const auto& s : servers_) {
    me.client->remote(s->endpoint(), "a")
        .link->send(std::make_shared<Message>(Verb::kComplete), true, [this, w](const MessageRef& m) {
          if (m->header().error) return fail(fmt::format("worker {} cannot end: {}", w, m->text(0)));
          ++workers_[static_cast<size_t>(w)]->completed;
        });
  }
}

// The contents of each message count once, however often it is sent.
void GeoRun::note_sent(const Message& m, const std::string& endpoint) {
  const Header& h = m.header();
  if (h.verb != Verb::kExchange || h.sequence == 0) return;
  Worker& me = *workers_[h.client];
  if (!me.seen.emplace(endpoint, h.sequence).second) return;
  const auto server =
      std::find_if(servers_.begin(), servers_.end(), [&](auto& s) { return s->endpoint() == endpoint; });
  const auto number = static_cast<size_t>(server - servers_.begin());
  Numbers& sent = me.sent[number];
  for (int i = 0; i < m.parts(); ++i) {
    const Part& p = m.part(i);
    if (p.kind != PartKind::kTensor) continue;
    if (p.variable == kGDelta) {
      const auto* rows = reinterpret_cast<const float*>(m.payload(i));
      for (int64_t k = 0; k < p.dims[0]; ++k) me.shows[number] += rows[k * GrownTable::kWidth];
      continue;
    }
    const auto* d = reinterpret_cast<const double*>(m.payload(i));
    for (int64_t k = 0; k < p.dims[0]; ++k) {
      const int64_t at = p.variable == kADelta ? k : kDense + m.ids(i - 1)[static_cast<size_t>(k)];
      sent[static_cast<size_t>(at)] += d[k];
    }
  }
}

void GeoRun::plan_faults() {
  const auto some_time = [this] { return world_.within(20, 100 + 80 * plan_.steps); };
  for (int i = 0; i < plan_.server_crashes; ++i) {
    world_.after(some_time(),
                 [s = servers_[static_cast<size_t>(world_.pick(0, plan_.servers - 1))].get()] { s->kill(); });
  }
  for (int i = 0; i < plan_.cuts; ++i) {
    const auto w = static_cast<uint32_t>(world_.pick(0, plan_.workers - 1));
    const std::pair between(w, servers_[static_cast<size_t>(world_.pick(0, plan_.servers - 1))]->endpoint());
    world_.after(some_time(), [this, between] {
      network_.cut.insert(between);
      world_.after(world_.within(100, 20000), [this, between] { network_.cut.erase(between); });
    });
  }
}

bool GeoRun::over() const {
  const auto failed = [](const auto& s) { return s->failed(); };
  if (!wrong_.empty() || std::any_of(servers_.begin(), servers_.end(), failed)) return true;
  return std::all_of(workers_.begin(), workers_.end(),
                     [this](const auto& w) { return w->completed == plan_.servers; }) &&
         std::all_of(servers_.begin(), servers_.end(), [](const auto& s) { return s->server() != nullptr; });
}

std::string GeoRun::run() {
  for (auto& s : servers_) s->start();
  for (int w = 0; w < plan_.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    begin(w);
  }
  plan_faults();
  const bool ended = world_.run([this] { return over(); }, kLimit);
  for (auto& s : servers_) {
    if (wrong_.empty()) wrong_ = s->wrong();
    crashes_ += s->crashes();
  }
  if (wrong_.empty() && !ended) wrong_ = "it hangs";
  if (wrong_.empty()) wrong_ = check();
  return wrong_;
}

std::string GeoRun::check() const {
  for (size_t s = 0; s < servers_.size(); ++s) {
    const Node& node = *servers_[s];
    if (!node.server()->finished()) return fmt::format("{} does not know that all workers are done", node.endpoint());
    if (const auto wrong = check_table(s); !wrong.empty()) return fmt::format("{}: {}", node.endpoint(), wrong);
    for (int64_t i = 0; i < kNumbers; ++i) {
      const auto at = static_cast<size_t>(i);
      double sent = 0;
      for (const auto& w : workers_) sent += w->sent[s][at];
      if (node.store->at(i) != sent) {
        return fmt::format("{}: number {} is {}, {} was sent", node.endpoint(), i, node.store->at(i), sent);
      }
      const Worker& last = *workers_.back();
      const Tensor& mine = (i < kDense ? last.a : last.t)->tensor();
      const auto row = static_cast<int64_t>(s) * (i < kDense ? kDense : kRows) + (i < kDense ? i : i - kDense);
      const double has = mine.data<double>()[row], should = sent + last.learned[s][at] - last.sent[s][at];
      if (has != should) {
        return fmt::format("the last worker has {} for number {} of {}, not {}", has, i, node.endpoint(), should);
      }
    }
  }
  return "";
}

// Each difference was added once, by the rules; the last worker has the rows of the server and no others.
std::string GeoRun::check_table(size_t server) const {
  const GrownTable& grown = servers_[server]->store->grown();
  if (auto wrong = grown.check(); !wrong.empty()) return wrong;
  double sent = 0;
  for (const auto& w : workers_) sent += w->shows[server];
  if (grown.shows_added() != sent) return fmt::format("{} shows were added, {} were sent", grown.shows_added(), sent);
  const auto mine = workers_.back()->table();
  std::vector<int64_t> here = mine->keys();
  std::erase_if(here, [&](int64_t key) { return sparse::server_of(key, servers_.size()) != server; });
  const std::vector<int64_t> there = grown.table()->keys();
  if (here != there) return fmt::format("the last worker has {} of {} rows", here.size(), there.size());
  const std::vector<float> copies = rows_of(*mine, here), rows = rows_of(*grown.table(), there);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % GrownTable::kWidth == 2 || copies[i] == rows[i]) continue;
    return fmt::format("the last worker has {} shows of key {}, not {}", copies[i], here[i / GrownTable::kWidth],
                       rows[i]);
  }
  return "";
}

}  // namespace anabranch::ps::sim
