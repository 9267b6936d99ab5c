// The simulated devices of the process: their memory, queues and events, and the execution of items, on one thread at a
// time. Nothing runs until a thread waits or polls, also in another process (attendant.h); then the schedule chooses
// among all queues whose first item may run.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "attendant.h"
#include "capture.h"
#include "comms.h"
#include "failure.h"
#include "handles.h"
#include "mapping.h"
#include "memory.h"
#include "ops/device/kernels.h"
#include "pinned.h"
#include "schedule.h"
#include "settings.h"
#include "work.h"

namespace anabranch::simdevice {

using Lock = std::unique_lock<std::mutex>;

class Machine {
 public:
  Machine(const ab_host* host, const Settings& settings);
  ~Machine();

  std::mutex mutex;  // guards everything below. Held by callers, unless stated otherwise
  const ab_host* const host;
  const Settings settings;
  Handles<ab_queue> queues{"a queue"};
  Handles<ab_event> events{"an event"};
  Handles<ab_kernel_entry> kernels{"a made kernel"};
  Handles<ab_library> libraries{"a library call"};
  Handles<ab_graph> graphs{"a graph"};
  Comms comms;
  Pinned pinned;
  Clock host_clock;  // items that the host has waited for

  Mapping& mapping() { return mapping_; }
  Memory& memory(int device);
  void check_device(int device) const;

  // Appends an item, or adds it to the capture of its queue.
  void put(ab_queue& queue, Item item);
  // Appends an item to a queue, captured or not. asof, label: of an item of a graph, from its capture.
  void append(ab_queue& queue, Item item, uint64_t asof = 0, const std::string* label = nullptr);
  const std::string* intern(const std::string& text) { return &*texts_.insert(text).first; }
  const std::string* name(const ab_queue& queue, const Item& item);
  uint64_t number() const { return number_; }
  uint64_t next_number() { return ++number_; }
  int next_queue() { return queue_count_++; }

  // Runs items until there() or the deadline, in milliseconds from now. AB_FAULT, AB_TIMED_OUT.
  void run_until(Lock& lock, const std::function<bool()>& there, int64_t within_ms);
  void run_some(Lock& lock);                                            // at least one item, if there is one
  bool go_on(Lock& lock) { return !driven_ && !fault_ && step(lock); }  // one item. false: none, or not now
  uint64_t steps() const { return ns_; }                                // increases with each item
  void attend();                              // from now on, when other processes wait for this one
  void lose(Lock& lock, const Failure& why);  // items in queues no longer run
  void wake() { changed_.notify_all(); }      // waiting threads check again
  void check_fault() const;
  bool faulted() const { return fault_ != nullptr; }
  bool idle(const ab_queue& queue) const { return queue.items.empty() && !queue.busy; }
  std::string left() const;

 private:
  bool ready(const ab_queue& queue) const;
  bool step(Lock& lock);                                                        // false: nothing can run
  bool rest(Lock& lock, std::chrono::steady_clock::time_point limit, int nap);  // true: for other live processes
  void run_item(Lock& lock, ab_queue& queue);
  void begin_round(Lock& lock, Round& round);
  void run_round(Lock& lock, Round& round);
  void work(Lock& lock, Item& item, const std::function<void()>& run);  // runs without the lock
  std::string standing() const;

  Mapping mapping_;
  std::vector<std::unique_ptr<Memory>> memories_;
  Schedule schedule_;
  std::set<std::string> texts_;
  std::condition_variable changed_;
  bool driven_ = false;  // a thread runs an item
  std::unique_ptr<Failure> fault_;
  uint64_t number_ = 0, ns_ = 0;
  int queue_count_ = 0;
  std::unique_ptr<Attendant> attendant_;
};

}  // namespace anabranch::simdevice
