// Devices that compute together, one rank per device: all of this process, in the order given, or some of this process
// and the rest of others. All calls of a process are enqueued one after the other, in the same order on all devices,
// for any number of threads and communicators, so that no two can wait for each other. With several processes the
// callers must use one order in all of them.
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
  // For these devices; several communicators of the same devices are numbered. Created at first use, and kept.
  static std::shared_ptr<Communicator> of(const std::vector<int>& devices, int number);
  // With ranks of other processes. One process creates the id and sends it to the others; then all of them join, and
  // each waits for the others. These devices are the ranks from `first` on.
  struct Id {
    char bytes[128] = {};
  };
  static Id new_id();
  static void check_there();  // Unavailable if the plug-in has no communicators
  static std::shared_ptr<Communicator> join(const std::vector<int>& devices, int number, const Id& id, int first,
                                            int total);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  struct Part {
    const void* send = nullptr;  // null: this rank contributes zeros, or nothing where only the root sends
    void* recv = nullptr;
  };
  struct Call {
    ab_collective what;
    int dtype = 0;
    size_t count = 0, bytes = 0;
    int root = 0;             // among all ranks
    std::vector<Part> parts;  // of the ranks of this process
  };
  // One after the other, after everything in `queue` of one of the devices; later work in `queue` follows them on all
  // devices. After a failure this communicator is unusable, and of() creates another one; `failed`, if given, is set to
  // the rank that is gone or has given up, if one is the reason.
  void run(ab_queue* queue, int device, std::span<const Call> calls, int* failed = nullptr);
  bool works() const { return works_.load(std::memory_order_relaxed); }
  void wait(std::span<Lookout* const> lookouts = {}) const;  // blocks the calling thread until the last run has ended
  bool passed() const;                                       // all runs have
  // Another rank is gone or has given up: the reason, and its rank (-1 if unknown). Empty: none.
  std::string failure(int* rank);
  // Ranks of other processes may never arrive: pending work ends with undefined values, and the communicator is
  // unusable.
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
  std::string check_ranks(int* rank) const;
  void run_all(ab_queue* queue, int device, std::span<const Call> calls);
  void prepare(const Call& call);
  void put(const Call& call);
  void leave() noexcept;
  void follow(ab_queue* queue) const;  // later work in `queue` follows what is in the ranks' queues
  void give_up() noexcept;

  const Devices& devices_;
  std::vector<Rank> ranks_;
  std::atomic<bool> works_{true};
};

}  // namespace anabranch::device
