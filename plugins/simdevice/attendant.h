// A thread that runs the queues of this process while another process waits for its part of a collective and no thread
// of this process waits for the device. Real devices run without a waiting thread; without this one, two processes
// could deadlock, one waiting for the device and the other for a message. It acts as late as possible, so that it
// hardly ever runs before a waiting thread and the schedule keeps its order.
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
