#include "sim/follow.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "sim/follow_parts.h"
#include "sim/worker_client.h"
#include "sparse/hash.h"

namespace anabranch::ps::sim {
namespace {

namespace fs = std::filesystem;

constexpr auto kLimit = std::chrono::minutes(60);

std::string memory_folder(uint64_t seed) {
  static std::atomic<uint64_t> number{0};
  const fs::path in = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  return in / fmt::format("anabranch-follow-{}-{}-{}", getpid(), seed, number++);
}

}  // namespace

// The writer waits for its answers; meanwhile others go on, and servers may be killed and come again.
class FollowRun::Patient final : public Channel {
 public:
  Patient(FollowRun& run, std::string endpoint) : run_(run), endpoint_(std::move(endpoint)) {}
  void call(MessageRef request, Milliseconds, Answer answer) override {
    if (!run_.network_.at_once) {
      for (int events = run_.world_.pick(0, 12); events > 0; --events) run_.world_.run_next();
    }
    const auto& doors = run_.network_.doors;
    while (doors.find(endpoint_) == doors.end() && run_.world_.run_next()) {
    }
    const std::shared_ptr<Handler> handler = doors.at(endpoint_);
    (*handler)(request->clone(), [&answer](const MessageRef& m) { answer(m->clone()); });
  }

 private:
  FollowRun& run_;
  const std::string endpoint_;
};

FollowRun::FollowRun(const FollowPlan& plan, FollowDefect planted)
    : plan_(plan),
      planted_(planted),
      world_(plan.seed * 0x9e3779b97f4a7c15u + 3),
      network_(world_, plan.faults),
      folder_(memory_folder(plan.seed)) {
  fs::create_directories(folder_ + "/run");
  fs::create_directories(folder_ + "/copies");
  ServerNode::Options o;
  o.mode = plan.mode;
  o.trainers = plan.workers;
  o.snapshot_every = plan.snapshot_every;
  o.durability = plan.durability;
  for (int s = 0; s < plan.servers; ++s) {
    servers_.push_back(std::make_unique<Node>(world_, network_, s, o));
    servers_.back()->rules = plan.rules;
    servers_.back()->defect = planted;
  }
}

FollowRun::~FollowRun() {
  followers_.clear();
  fs::remove_all(folder_);
}

void FollowRun::fail(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

int FollowRun::crashes() const {
  int all = 0;
  for (const auto& s : servers_) all += s->crashes();
  return all;
}

std::string FollowRun::path(const std::string& root, int64_t number) const {
  return fmt::format("{}/{}/checkpoint-{:06}", folder_, root, number);
}

// ---- training

void FollowRun::begin(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  network_.at_once = true;
  me.client = worker_client(world_, network_, w);
  if (w == 0) {
    writer_ = std::make_shared<Client>(
        worker_link(world_, w), [this](const std::string& e) { return std::make_shared<Patient>(*this, e); },
        timer_of(world_));
  }
  for (const auto& s : servers_) {
    me.dense.push_back(me.client->remote(s->endpoint(), "w"));
    me.tables.push_back(me.client->remote(s->endpoint(), "t"));
    if (w == 0) tables_.push_back(writer_->remote(s->endpoint(), "t"));
  }
  network_.at_once = false;
  world_.after(world_.within(1, 50), [this, w] { step(w); });
}

void FollowRun::step(int w) {
  Worker& me = *workers_[static_cast<size_t>(w)];
  if (me.steps == plan_.steps) {
    for (const Remote& r : me.dense) {
      r.link->send(std::make_shared<Message>(Verb::kComplete), true, [this, w](const MessageRef& m) {
        if (m->header().error) return fail(fmt::format("worker {} cannot end: {}", w, m->text(0)));
        Worker& mine = *workers_[static_cast<size_t>(w)];
        mine.done = ++mine.completed == plan_.servers;
      });
    }
    return;
  }
  ++me.steps;
  const Tensor one = filled(1, 1);
  for (const Remote& r : me.dense) me.client->push(r, one);
  for (size_t s = 0; s < servers_.size(); ++s) {
    std::vector<int64_t> keys = keys_of_step(w, me.steps);
    std::erase_if(keys, [&](int64_t key) { return sparse::server_of(key, servers_.size()) != s; });
    std::vector<float> rows;
    for (size_t i = 0; i < keys.size(); ++i) rows.insert(rows.end(), {1, 0, 0.25F});
    me.client->push(me.tables[s], {keys, Part::kAnyHeight, rows.data(), DType::kFloat32, GrownTable::kWidth});
  }
  me.client->exchange([this, w](const std::exception_ptr& e) {
    try {
      if (e) std::rethrow_exception(e);
    } catch (const Error& error) {
      return fail(fmt::format("worker {} hears: {}", w, error.message()));
    }
    const bool saves = w == 0 && world_.chance(plan_.saves), holds = planted_ != FollowDefect::kStepsGoOn;
    if (saves && !holds) world_.after(world_.within(1, 30), [this, w] { step(w); });
    world_.after(world_.within(1, 30), [this, w, saves, holds] {
      if (saves && !saving_) save();  // with a planted defect, steps go on meanwhile
      if (!saves || holds) step(w);
    });
  });
}

// All is copied, nothing is pinned: every follower has the newest version.
void FollowRun::finish() {
  while (!to_copy_.empty()) copy_some();
  for (auto& f : followers_) {
    fs::remove(f->root + "/pinned.json");
    look_at(*f);
    if (!saved_.empty() && f->version != saved_.rbegin()->first) {
      fail(fmt::format("a follower has version {} at the end, the newest is {}: {}", f->version, saved_.rbegin()->first,
                       f->follower.state().problem));
    }
  }
  for (const auto& s : servers_) {
    if (const auto wrong = s->store->grown().check(); !wrong.empty()) fail(s->endpoint() + ": " + wrong);
  }
}

bool FollowRun::over() const {
  if (!wrong_.empty()) return true;
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->done; }) &&
         std::all_of(servers_.begin(), servers_.end(), [](const auto& s) { return s->server() != nullptr; });
}

std::string FollowRun::run() {
  for (auto& s : servers_) s->start();
  for (int w = 0; w < plan_.workers; ++w) {
    workers_.push_back(std::make_unique<Worker>());
    begin(w);
  }
  const std::string share = plan_.shares ? folder_ + "/share" : "";
  for (const char* root : {"run", "run", "copies"}) {
    followers_.push_back(std::make_unique<Followed>(folder_ + "/" + root, share));
  }
  for (int i = 0; i < plan_.server_crashes; ++i) {
    world_.after(world_.within(20, 100 + 60 * plan_.steps),
                 [s = servers_[static_cast<size_t>(world_.pick(0, plan_.servers - 1))].get()] { s->kill(); });
  }
  world_.after(world_.within(1, 20), [this] { look(); });
  const bool ended = world_.run([this] { return over(); }, kLimit);
  for (const auto& s : servers_) {
    if (s->failed()) fail(s->wrong());
  }
  if (!ended) fail("it hangs");
  if (wrong_.empty()) finish();
  return wrong_;
}

}  // namespace anabranch::ps::sim
