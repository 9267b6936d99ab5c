// Ranks of a communicator that are split over processes, as tests use them: forks of the test's process, which never
// opens the device itself, and a page that all of them see.
#pragma once
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "harness.h"

namespace anabranch::device {

// Memory of all processes of a test.
struct Page {
  std::atomic<int> named[4];
  char ids[4][128];
  std::atomic<int> steps[16];  // how many have come there
  std::atomic<int64_t> times[4];
  std::atomic<uint64_t> sums[8][512];  // by rank and case: of what it received

  static Page* make() {
    void* p = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (p) Page();
  }
  // Waits until `count` have come, this one included if it `comes`.
  void meet(int step, int count, bool comes = true) {
    if (comes) ++steps[step];
    while (steps[step] < count) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  void name(int which) {
    AB_WELL(api.comm_id(ids[which]));
    named[which] = 1;
  }
  const char* id(int which) {
    while (!named[which]) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return ids[which];
  }
};

inline int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

inline size_t memory_of_devices() {  // mappings
  std::ifstream maps("/proc/self/maps");
  size_t found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find("memfd:anabranch") != std::string::npos;
  return found;
}

using Body = std::function<void(int process, Page& page)>;

// body(k, page) in process k of `count`. Those of `killed` must end by a signal, the others with all they expect. A
// process that hangs ends by an alarm. Memory and descriptors of an orderly process are given back.
inline void in_processes(int count, const Body& body, const std::set<int>& killed = {}) {
  Page* page = Page::make();
  fflush(nullptr);
  std::vector<pid_t> children;
  for (int k = 0; k < count; ++k) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(60);
    const size_t files = open_files();
    body(k, *page);
    EXPECT_EQ(open_files(), files) << "process " << k;
    EXPECT_EQ(memory_of_devices(), 0U) << "process " << k;
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (int k = 0; k < count; ++k) {
    int status = 0;
    ASSERT_EQ(waitpid(children[static_cast<size_t>(k)], &status, 0), children[static_cast<size_t>(k)]);
    if (killed.contains(k)) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "process " << k << ": " << status;
    } else {
      EXPECT_EQ(status, 0) << "process " << k;
    }
  }
  munmap(page, sizeof(Page));
}

inline void die() { kill(getpid(), SIGKILL); }

// Ranks first, first + 1, ... of communicator `which`, one a device of this process.
class Members {
 public:
  Members(Page& page, int first, int count, int all, Flags flags = {}, size_t room = size_t{1} << 16, int which = 0)
      : sim(std::move(flags), count), first_(first), room_(room) {
    if (first == 0) page.name(which);
    for (int k = 0; k < count; ++k) {
      queues.push_back(sim.queue("comm", k));
      send.push_back(memory(k));
      recv.push_back(memory(k));
    }
    comms = join(page.id(which), first, all);
    EXPECT_EQ(api.allocate_pinned(room, &host_), AB_OK) << last_error();
  }
  ~Members() { leave(comms, 0); }

  int count() const { return static_cast<int>(queues.size()); }
  int rank(int k) const { return first_ + k; }

  std::vector<ab_comm*> join(const char* id, int first, int all) {
    std::vector<ab_comm*> made(queues.size());
    EXPECT_EQ(api.comm_group(1), AB_OK);
    for (int k = 0; k < count(); ++k) {
      EXPECT_EQ(api.comm_new(k, id, first + k, all, &made[static_cast<size_t>(k)]), AB_OK) << last_error();
    }
    EXPECT_EQ(api.comm_group(0), AB_OK);
    return made;
  }
  void leave(std::vector<ab_comm*>& left, int abort) {
    for (ab_comm* comm : left) EXPECT_EQ(api.comm_free(comm, abort), AB_OK) << last_error();
    left.clear();
  }
  // One collective of the ranks of this process.
  int run(ab_collective what, size_t n, int dtype = AB_FLOAT32, int root = 0) {
    return run(comms, what, n, dtype, root);
  }
  int run(const std::vector<ab_comm*>& on, ab_collective what, size_t n, int dtype, int root) {
    EXPECT_EQ(api.comm_group(1), AB_OK);
    int status = AB_OK;
    for (size_t k = 0; k < queues.size() && !status; ++k) {
      status = api.comm_run(on[k], queues[k], what, send[k], recv[k], n, dtype, root);
    }
    const std::string why = status ? last_error() : "";
    EXPECT_EQ(api.comm_group(0), AB_OK);
    last = why;
    return status;
  }
  int finish(int k = 0, int64_t within_ms = AB_FOREVER) {
    return sim.finish(queues[static_cast<size_t>(k)], k, within_ms);
  }
  void give(int k, const void* bytes, size_t size) {
    memcpy(host_, bytes, size);
    const auto at = static_cast<size_t>(k);
    AB_WELL(api.copy(queues[at], send[at], k, host_, AB_HOST_MEMORY, size));
    AB_WELL(finish(k));
  }
  const char* held(int k, size_t size) {
    const auto at = static_cast<size_t>(k);
    EXPECT_EQ(api.copy(queues[at], host_, AB_HOST_MEMORY, recv[at], k, size), AB_OK) << last_error();
    EXPECT_EQ(finish(k), AB_OK) << last_error();
    return static_cast<const char*>(host_);
  }
  // All ranks of this process give this number, and take part in a sum.
  float sum_of(float x) {
    for (int k = 0; k < count(); ++k) give(k, &x, sizeof x);
    EXPECT_EQ(run(AB_ALL_REDUCE_SUM, 1), AB_OK) << last;
    float sum = 0;
    memcpy(&sum, held(0, sizeof sum), sizeof sum);
    return sum;
  }

  Sim sim;
  std::vector<ab_queue*> queues;
  std::vector<ab_comm*> comms;
  std::vector<void*> send, recv;
  std::string last;  // why run() has failed

 private:
  void* memory(int device) const {
    void* p = nullptr;
    EXPECT_EQ(api.allocate(device, room_, &p), AB_OK) << last_error();
    return p;
  }

  const int first_;
  const size_t room_;
  void* host_ = nullptr;
};

inline constexpr int64_t kSoon = 100;  // milliseconds until the death of a process is known

// Asks until comm_check() fails. Its text is in last_error().
struct Told {
  int status = AB_OK, rank = 9;
  int64_t after_ms = 0;
};
inline Told told_by(ab_comm* comm, int64_t since) {
  Told told;
  while (!told.status && now_ms() - since < 10000) {
    told.status = api.comm_check(comm, &told.rank);
    told.after_ms = now_ms() - since;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return told;
}

// Giving up ends what is under way; then those that are left make another communicator, and it works.
inline void give_up_and_work_on(Members& m, Page& page, int first, int ranks) {
  EXPECT_EQ(m.run(AB_ALL_REDUCE_SUM, 1), AB_UNAVAILABLE) << "after a failure";
  m.leave(m.comms, 1);
  AB_WELL(m.finish());
  if (first == 0) page.name(1);
  m.comms = m.join(page.id(1), first, ranks);
  EXPECT_EQ(m.sum_of(2), 2 * static_cast<float>(ranks));
}

}  // namespace anabranch::device
