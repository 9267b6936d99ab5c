// Devices that compute together, one rank a device: all of this process, in the order in which they are listed, or some
// of this process and the rest of others. All calls of the process are put into queues one after the other, in the same
// order on all devices, whatever threads they come from and however many communicators there are: so none can wait for
// another one that waits for it. Of several processes that is up to the callers, who call in one order in all of them.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/event.h"

namespace anabranch::device {

class Communicator {
 public:
  // Of these devices; several with the same ones have numbers. Made when it is first asked for, and kept.
  static std::shared_ptr<Communicator> of(const std::vector<int>& devices, int number);
  // With ranks of other processes. One of these makes the id and tells the others; then all of them join, and each
  // waits for the others. These devices are the ranks from `first` on.
  struct Id {
    char bytes[128] = {};
  };
  static Id new_id();
  static void check_there();  // Unavailable without what communicators are made of
  static std::shared_ptr<Communicator> join(const std::vector<int>& devices, int number, const Id& id, int first,
                                            int total);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  struct Part {
    const void* send = nullptr;  // null: this rank gives zeros, or nothing where the root alone sends
    void* recv = nullptr;
  };
  struct Call {
    ab_collective what;
    int dtype = 0;
    size_t count = 0, bytes = 0;
    int root = 0;             // among all ranks
    std::vector<Part> parts;  // of the ranks of this process
  };
  // One after the other, behind everything in `queue` of one of the devices; what follows in `queue` comes behind them
  // on all devices. After a failure this communicator works no more, and of() makes another one.
  void run(ab_queue* queue, int device, std::span<const Call> calls);
  bool works() const { return works_.load(std::memory_order_relaxed); }
  void wait(std::span<Lookout* const> lookouts = {}) const;  // the calling thread, for the last run
  bool passed() const;                                       // all runs have
  // Another rank is gone or has given up: why, and which one, -1 where that is not known. Empty: none.
  std::string failure(int* rank);
  // Ranks of other processes may never come: what is under way ends with any values, and this works no more.
  void abort() noexcept;

 private:
  struct Rank {
    int device = 0;
    ab_queue* queue = nullptr;
    ab_comm* comm = nullptr;
    std::unique_ptr<Event> begun, ended;
    std::shared_ptr<void> zeros;
    size_t zero_bytes = 0;
  };
  Communicator(const std::vector<int>& devices, int number);
  void join_all(const Id& id, int first, int total);
  void run_all(ab_queue* queue, int device, std::span<const Call> calls);
  void prepare(const Call& call);
  void put(const Call& call);
  void leave() noexcept;
  void give_up() noexcept;

  const Devices& devices_;
  std::vector<Rank> ranks_;
  std::atomic<bool> works_{true};
};

}  // namespace anabranch::device
