// Kernels of the host build with the interface that the plug-in requires of compiled ones.
#include "cuda/kernels.h"

#include "../device/test_kernels.cu"
#include "fake_runtime.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

void* host_address(const void* address, size_t, ab_access) { return const_cast<void*>(address); }

}  // namespace anabranch::device

namespace anabranch::cuda {

void check_kernel_keys() {}
ab_kernel find_kernel_of(const char* key) { return device::find_kernel(key); }
const char* key_of(ab_kernel kernel) { return kernel->key.c_str(); }
size_t args_size_of(ab_kernel kernel) { return kernel->args_size; }
size_t room_of(ab_kernel kernel, const void* args) { return kernel->room ? kernel->room(args) : 0; }

struct MadeEntry : ab_kernel_entry {
  std::shared_ptr<const MadeKernel> made;
};

ab_kernel new_kernel(ab_kernel like, std::shared_ptr<const MadeKernel> made) {
  return new MadeEntry{{like->key, like->args_size}, std::move(made)};
}

bool free_kernel(ab_kernel kernel) {
  if (kernel->run) return false;
  delete static_cast<const MadeEntry*>(kernel);
  return true;
}

cudaError_t run_kernel(ab_kernel kernel, cudaStream_t stream, const void* args, void* workspace, size_t room) {
  if (!kernel->run) return static_cast<const MadeEntry*>(kernel)->made->launch(stream, args);
  const std::string bytes(static_cast<const char*>(args), kernel->args_size);
  fake::put(stream, [=] { kernel->run({{workspace, room}}, bytes.data()); });
  return std::exchange(fake::state().last, cudaSuccess);
}

}  // namespace anabranch::cuda
