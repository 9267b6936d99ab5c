// A node of a device that adds up with the same nodes of other processes, on the devices. The processes of a ring first
// agree on the host, as those without devices do, so that disagreement or absence is reported before any device waits;
// then each enqueues its part. Belongs to one node of a plan; one thread at a time, except for WaitedJob's functions.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/waited_job.h"
#include "device/communicator.h"

namespace anabranch::comm {

class DeviceRing final : public WaitedJob, public device::Lookout {
 public:
  // Several communicators of one ring are numbered.
  DeviceRing(int ring, int number) : ring_(ring), number_(number) {}

  Group& group() { return *ring_.get(); }  // Unavailable: not joined
  // All processes are about to do this, each on its device, and the communicator exists.
  void agree(What what, int device);
  // Enqueues the agreed operation after everything in `queue` of that device. parts: one.
  void run(ab_queue* queue, std::span<const device::Communicator::Call> calls);
  void wait();  // blocks the calling thread until it has ended

  void look() override;
  void give_up() noexcept override;

 private:
  struct Note;
  void work(Peers& peers) override;
  void meet(Peers& peers);
  bool all_have_one(const Peers& peers) const;
  std::vector<int> devices_of_all(const Peers& peers) const;
  void join(Peers& peers, const std::vector<int>& devices);
  void agree_on(Peers& peers, const char* step, const Note& note);
  void look_at_group() const;
  [[noreturn]] void fail(int rank, const std::string& why) const;  // rank: that is the reason; -1: unknown
  bool under_way() const noexcept;
  uint64_t serial() const { return communicator_ && communicator_->works() ? serial_ : 0; }

  FoundRing ring_;
  const int number_;
  std::shared_ptr<Group> group_;  // the group of the communicator
  Collective collective_;
  What what_;
  int device_ = -1;
  std::shared_ptr<device::Communicator> communicator_;
  uint64_t serial_ = 0;  // of the communicator, the same in all processes
};

}  // namespace anabranch::comm
