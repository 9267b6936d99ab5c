#include "process.h"

namespace anabranch::cuda {
namespace {

int allocate(int device, size_t bytes, void** out) {
  return called([&](Process& p) {
    p.check_device(device);
    given(out, "out") = nullptr;
    if (!bytes) return;
    use_device(device);
    well(cudaMalloc(out, bytes), bytes, " bytes of device ", device);
    p.made(Thing::kMemory);
  });
}

int release(int device, void* memory) {
  return called([&](Process& p) {
    p.check_device(device);
    if (!memory) return;
    if (!p.faulted()) use_device(device);
    p.freed(Thing::kMemory, cudaFree(memory), "releasing device memory");
  });
}

int allocate_pinned(size_t bytes, void** out) {
  return called([&](Process& p) {
    given(out, "out") = nullptr;
    if (!bytes) return;
    well(cudaHostAlloc(out, bytes, cudaHostAllocPortable), bytes, " bytes of pinned memory");
    p.made(Thing::kPinned);
  });
}

int release_pinned(void* memory) {
  return called([&](Process& p) {
    if (memory) p.freed(Thing::kPinned, cudaFreeHost(memory), "releasing pinned memory");
  });
}

}  // namespace

void fill_memory(ab_device_api& api) {
  api.allocate = allocate;
  api.release = release;
  api.allocate_pinned = allocate_pinned;
  api.release_pinned = release_pinned;
}

}  // namespace anabranch::cuda
