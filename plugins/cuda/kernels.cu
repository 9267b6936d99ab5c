#include "ops/device/kernels.h"

#include <unordered_set>

#include "../failure.h"
#include "kernels.h"

namespace anabranch::cuda {
namespace {

struct MadeEntry : ab_kernel_entry {
  std::shared_ptr<const MadeKernel> made;
};

// null: it was compiled with the plug-in.
const MadeEntry* made_of(ab_kernel kernel) { return kernel->run ? nullptr : static_cast<const MadeEntry*>(kernel); }

}  // namespace

void check_kernel_keys() {
  std::unordered_set<std::string> keys;
  for (ab_kernel kernel = device::first_kernel; kernel; kernel = kernel->next) {
    if (!keys.insert(kernel->key).second) plugin::fail(AB_INTERNAL, "two kernels have the key ", kernel->key);
  }
}

ab_kernel find_kernel_of(const char* key) { return device::find_kernel(key); }
const char* key_of(ab_kernel kernel) { return kernel->key.c_str(); }
size_t args_size_of(ab_kernel kernel) { return kernel->args_size; }
size_t room_of(ab_kernel kernel, const void* args) { return kernel->room ? kernel->room(args) : 0; }

ab_kernel new_kernel(ab_kernel like, std::shared_ptr<const MadeKernel> made) {
  return new MadeEntry{{like->key, like->args_size}, std::move(made)};
}

bool free_kernel(ab_kernel kernel) {
  const MadeEntry* entry = made_of(kernel);
  delete entry;
  return entry != nullptr;
}

cudaError_t run_kernel(ab_kernel kernel, cudaStream_t stream, const void* args, void* workspace, size_t room) {
  if (const MadeEntry* entry = made_of(kernel)) return entry->made->launch(stream, args);
  return static_cast<cudaError_t>(kernel->run({stream, {workspace, room}}, args));
}

}  // namespace anabranch::cuda
