#include "process.h"

namespace anabranch::simdevice {
namespace {

int allocate(int device, size_t bytes, void** out) {
  return locked([&](Machine& m, Lock&) {
    Memory& memory = m.memory(device);
    given(out, "out") = bytes ? memory.allocate(bytes, m.number()) : nullptr;
  });
}

// The items that the host knows to have ended; after a fault nothing runs.
const Clock* over(const Machine& m) { return m.faulted() ? nullptr : &m.host_clock; }

int release(int device, void* p) {
  return locked([&](Machine& m, Lock&) {
    Memory& memory = m.memory(device);
    if (!p) return;
    need(m.mapping().device_of(p) == device, "release of an address that is not of device ", device);
    memory.release(p, over(m));
  });
}

int allocate_pinned(size_t bytes, void** out) {
  return locked([&](Machine& m, Lock&) { given(out, "out") = bytes ? m.pinned.allocate(bytes) : nullptr; });
}

int release_pinned(void* p) {
  return locked([&](Machine& m, Lock&) {
    if (p) m.pinned.release(p, over(m));
  });
}

}  // namespace

void fill_memory(ab_device_api& api) {
  api.allocate = allocate;
  api.release = release;
  api.allocate_pinned = allocate_pinned;
  api.release_pinned = release_pinned;
}

}  // namespace anabranch::simdevice
