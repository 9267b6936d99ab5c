// Devices of this process that compute together, one rank a device, in the order in which they are listed. All calls of
// the process are put into queues one after the other, in the same order on all devices, whatever threads they come
// from and however many communicators there are: so none can wait for another one that waits for it.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "device/event.h"

namespace anabranch::device {

class Communicator {
 public:
  // Of these devices; several with the same ones have numbers. Made when it is first asked for, and kept.
  static std::shared_ptr<Communicator> of(const std::vector<int>& devices, int number);
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
    int root = 0;
    std::vector<Part> parts;  // by rank
  };
  // One after the other, behind everything in `queue` of one of the devices; what follows in `queue` comes behind them
  // on all devices. After a failure this communicator works no more, and of() makes another one.
  void run(ab_queue* queue, int device, std::span<const Call> calls);
  bool works() const { return works_.load(std::memory_order_relaxed); }
  void wait() const;  // the calling thread, for the last run

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
  void join_all();
  void run_all(ab_queue* queue, int device, std::span<const Call> calls);
  void prepare(const Call& call);
  void put(const Call& call);
  void give_up() noexcept;

  const Devices& devices_;
  std::vector<Rank> ranks_;
  std::atomic<bool> works_{true};
};

}  // namespace anabranch::device
