// A node of a device among the same nodes of other processes: it is there that they add up, not here. The processes of
// a ring first agree, as those without devices do, on what they are about to compute, so that those that disagree or do
// not come are told before anything waits on a device; then each puts its part into a queue. Of one node of a plan; one
// thread at a time, but for what WaitedJob says.
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
  // Several communicators of one ring have numbers.
  DeviceRing(int ring, int number) : ring_(ring), number_(number) {}

  Group& group() { return *ring_.get(); }  // Unavailable: not joined
  // All processes are about to do this, each on a device of its own, and the communicator is there.
  void agree(What what, int device);
  // Of what was agreed on: behind everything in `queue` of that device. parts: one.
  void run(ab_queue* queue, std::span<const device::Communicator::Call> calls);
  void wait();  // the calling thread, for the end of it

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
  bool under_way() const noexcept;
  uint64_t serial() const { return communicator_ && communicator_->works() ? serial_ : 0; }

  FoundRing ring_;
  const int number_;
  std::shared_ptr<Group> group_;  // that the communicator is of
  Collective collective_;
  What what_;
  int device_ = -1;
  std::shared_ptr<device::Communicator> communicator_;
  uint64_t serial_ = 0;  // of the communicator, the same in all processes
};

}  // namespace anabranch::comm
