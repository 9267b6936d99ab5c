// The machine of the process and the functions of the interface, one file per part of the table.
#pragma once
#include "put.h"

namespace anabranch::simdevice {

Machine& machine();  // Unavailable if it is not open, or in a forked process

// Wrapper of every function of the interface: fn(machine, lock) under the lock.
template <class Fn> int locked(Fn&& fn) {
  return told([&] {
    Machine& m = machine();
    Lock lock(m.mutex);
    fn(m, lock);
  });
}

void fill_process(ab_device_api& api);
void fill_memory(ab_device_api& api);
void fill_queues(ab_device_api& api);
void fill_launches(ab_device_api& api);
void fill_graphs(ab_device_api& api);
void fill_comms(ab_device_api& api);

}  // namespace anabranch::simdevice
