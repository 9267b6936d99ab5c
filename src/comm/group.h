// A group of processes, as seen by one of them: the thread that meets the others, and its queue of jobs. Any thread may
// start jobs; all processes must start the same ones in the same order.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/collective.h"

namespace anabranch::comm {

// Must stay alive from begin() to ended().
class Job {
 public:
  virtual ~Job() = default;
  virtual void work(Peers& peers) = 0;  // in the group's thread
  // called once; the group does not touch the job afterwards
  virtual void ended(std::exception_ptr error) noexcept = 0;

 private:
  friend class Group;
  Job* next_ = nullptr;
};

class Group {
 public:
  // `held` stays alive as long as the group.
  explicit Group(std::unique_ptr<Peers> peers, std::shared_ptr<void> held = nullptr);
  ~Group();  // jobs that have not started end with an error
  Group(const Group&) = delete;

  int rank() const { return peers_->rank(); }
  int size() const { return peers_->size(); }
  const std::vector<std::string>& endpoints() const { return peers_->endpoints(); }
  int processes_here() const;  // of the group, at the address of this machine
  void fail(const std::string& why) { peers_->fail(why); }
  void look() { peers_->look(); }
  Milliseconds deadline() const { return peers_->deadline(); }  // of each meeting
  std::string name(int rank) const { return peers_->name(rank); }
  std::string failure() const { return peers_->failure(); }
  bool of_parent() const;  // after a fork its thread and connections exist in the parent only

  void begin(Job& job);
  // Runs `what` in the group's thread and waits for it.
  void call(const std::function<void(Peers&)>& what);

 private:
  void work();
  Job* next();

  const std::unique_ptr<Peers> peers_;
  const std::shared_ptr<void> held_;
  const uint32_t forks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Job *first_ = nullptr, *last_ = nullptr;
  bool over_ = false;
  std::thread thread_;
};

// ---- the groups of this process, by the number that programs name (ring_id)

// InvalidArgument if there is one that works.
void keep_ring(int ring, std::shared_ptr<Group> group);
std::shared_ptr<Group> find_ring(int ring);  // null: not joined
std::shared_ptr<Group> ring(int ring);       // Unavailable: not joined
void forget_rings();
// Increases when rings are joined or removed: cached lookups are then outdated.
uint64_t rings_joined();

// The group of a ring, looked up again only after rings were joined or removed. For one thread.
class FoundRing {
 public:
  explicit FoundRing(int ring) : ring_(ring) {}
  int number() const { return ring_; }
  const std::shared_ptr<Group>& get();  // Unavailable: not joined

 private:
  const int ring_;
  uint64_t seen_ = 0;
  std::shared_ptr<Group> group_;
};

}  // namespace anabranch::comm
