// The compiled kernels. ops/device/kernels.h is for the compiler of kernels; the rest of the plug-in sees this.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "device/plugin_api.h"

namespace anabranch::cuda {

inline constexpr int kOldestGeneration = AB_CUDA_OLDEST;  // ten times the compute capability: 90 for 9.0

void check_kernel_keys();                   // Internal when two kernels have one
ab_kernel find_kernel_of(const char* key);  // null: there is none
const char* key_of(ab_kernel kernel);
size_t args_size_of(ab_kernel kernel);
size_t room_of(ab_kernel kernel, const void* args);

// A kernel that was not there when the plug-in was compiled.
class MadeKernel {
 public:
  virtual ~MadeKernel() = default;
  virtual cudaError_t launch(cudaStream_t stream, const void* args) const = 0;
};
// Takes the args that `like` takes, and needs no workspace.
ab_kernel new_kernel(ab_kernel like, std::shared_ptr<const MadeKernel> made);
bool free_kernel(ab_kernel kernel);  // false: it is not one of new_kernel()

cudaError_t run_kernel(ab_kernel kernel, cudaStream_t stream, const void* args, void* workspace, size_t room);

}  // namespace anabranch::cuda
