// A thread that goes on with the queues of this process while another process waits for its part of a collective and
// none of its own threads waits for the device: real devices need nobody who waits for them, and without this two
// processes could wait for each other, one for the device and one for a message. As late as possible: a thread that
// waits by itself is hardly ever anticipated, so that the order of what runs stays that of the schedule.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

namespace anabranch::simdevice {

class Machine;

class Attendant {
 public:
  explicit Attendant(Machine& machine);
  ~Attendant();  // without the lock of the machine
  Attendant(const Attendant&) = delete;

 private:
  void attend();

  Machine& machine_;
  bool over_ = false;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace anabranch::simdevice
