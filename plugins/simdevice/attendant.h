// A thread that runs the queues of this process while another process waits for its part of a collective and no thread
// of this one waits for the device: real devices run without a waiting thread, and without this two processes could
// deadlock, one waiting for the device and one for a message. It acts as late as possible: a waiting thread is hardly
// ever overtaken, so that the order stays that of the schedule.
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
