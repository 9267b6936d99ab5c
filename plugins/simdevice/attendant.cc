#include "attendant.h"

#include "machine.h"

namespace anabranch::simdevice {
namespace {

constexpr std::chrono::milliseconds kLate{20};  // that nothing has run, with another process waiting

}  // namespace

Attendant::Attendant(Machine& machine) : machine_(machine), thread_([this] { attend(); }) {}

Attendant::~Attendant() {
  {
    const Lock lock(machine_.mutex);
    over_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void Attendant::attend() {
  Lock lock(machine_.mutex);
  uint64_t seen = 0;
  while (!end_.wait_for(lock, kLate, [&] { return over_; })) {
    const bool stands = machine_.steps() == seen;
    while (stands && !over_ && machine_.comms.awaited() && machine_.go_on(lock)) continue;
    seen = machine_.steps();
  }
}

}  // namespace anabranch::simdevice
