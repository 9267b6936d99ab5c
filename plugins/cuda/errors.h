// Errors of the CUDA runtime as failures of the interface.
#pragma once
#include <cuda_runtime_api.h>

#include "../failure.h"

namespace anabranch::cuda {

using namespace plugin;

ab_status status_of(cudaError_t error);

// Throws. An error that stops all work on the devices becomes the process's fault.
[[noreturn]] void raise(cudaError_t error, const std::string& doing);

template <class... Doing> void well(cudaError_t error, const Doing&... doing) {
  if (error != cudaSuccess) [[unlikely]]
    raise(error, said(doing...));
}

}  // namespace anabranch::cuda
