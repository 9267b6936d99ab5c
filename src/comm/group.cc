#include "comm/group.h"

#include <atomic>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/fork.h"

namespace anabranch::comm {

Group::Group(std::unique_ptr<Peers> peers, std::shared_ptr<void> held)
    : peers_(std::move(peers)), held_(std::move(held)), forks_(anabranch::forks()), thread_([this] { work(); }) {}

int Group::processes_here() const {
  const auto host = [this](int r) { return endpoints()[static_cast<size_t>(r)].substr(0, endpoints()[r].rfind(':')); };
  int here = 0;
  for (int r = 0; r < size(); ++r) here += host(r) == host(rank());
  return here;
}

bool Group::of_parent() const { return forks_ != anabranch::forks(); }

Group::~Group() {
  peers_->fail("this process has left the group");
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Group::begin(Job& job) {
  AB_CHECK(!of_parent(), Unavailable, "the group of processes belongs to the parent of this process: join a new one");
  {
    const std::lock_guard lock(mutex_);
    job.next_ = nullptr;
    (last_ ? last_->next_ : first_) = &job;
    last_ = &job;
  }
  changed_.notify_one();
}

Job* Group::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return first_ || over_; });
  Job* job = first_;
  if (job) first_ = job->next_;
  if (!first_) last_ = nullptr;
  return job;
}

void Group::work() {
  while (Job* job = next()) {
    std::exception_ptr error;
    try {
      job->work(*peers_);
    } catch (...) {
      error = std::current_exception();
    }
    job->ended(std::move(error));
  }
}

void Group::call(const std::function<void(Peers&)>& what) {
  struct Called final : Job {
    const std::function<void(Peers&)>* what = nullptr;
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::exception_ptr error;
    void work(Peers& peers) override { (*what)(peers); }
    void ended(std::exception_ptr e) noexcept override {
      const std::lock_guard lock(mutex);
      error = std::move(e);
      over = true;
      changed.notify_all();
    }
  } job;
  job.what = &what;
  begin(job);
  std::unique_lock lock(job.mutex);
  job.changed.wait(lock, [&] { return job.over; });
  if (job.error) std::rethrow_exception(job.error);
}

namespace {

struct Rings {
  std::mutex mutex;
  std::atomic<uint64_t> count{0};
  std::map<int, std::shared_ptr<Group>> joined;
};
Rings& rings() {
  static auto& all = *new Rings();  // never destroyed: groups may be active at exit
  return all;
}

}  // namespace

void keep_ring(int ring, std::shared_ptr<Group> group) {
  std::shared_ptr<Group> old;
  const std::lock_guard lock(rings().mutex);
  auto& at = rings().joined[ring];
  AB_CHECK(!at || !at->failure().empty(), InvalidArgument, "this process has joined ring {} already", ring);
  old = std::exchange(at, std::move(group));
  rings().count.fetch_add(1);
}

std::shared_ptr<Group> find_ring(int ring) {
  const std::lock_guard lock(rings().mutex);
  const auto it = rings().joined.find(ring);
  return it == rings().joined.end() ? nullptr : it->second;
}

std::shared_ptr<Group> ring(int ring) {
  auto found = find_ring(ring);
  AB_CHECK(
      found, Unavailable,
      "this process has not joined ring {}: run the startup program of the fleet or of DistributeTranspiler first, "
      "which connects the trainers",
      ring);
  return found;
}

uint64_t rings_joined() { return rings().count.load(std::memory_order_acquire); }

const std::shared_ptr<Group>& FoundRing::get() {
  if (const uint64_t now = rings_joined(); !group_ || seen_ != now) {
    group_ = ring(ring_);
    seen_ = now;
  }
  return group_;
}

void forget_rings() {
  std::map<int, std::shared_ptr<Group>> gone;
  const std::lock_guard lock(rings().mutex);
  gone.swap(rings().joined);
  for (auto& [number, group] : gone) {
    // it cannot be destroyed in this process
    if (group && group->of_parent()) new std::shared_ptr<Group>(std::move(group));
  }
  rings().count.fetch_add(1);
}

}  // namespace anabranch::comm
