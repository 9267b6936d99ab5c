// Kernels that are compiled while a program runs, in the fake runtime: it keeps their text.
#include <memory>

#include "fake_runtime.h"

struct CUkern_st {
  std::string name;
};
struct CUlib_st {
  std::vector<std::unique_ptr<CUkern_st>> kernels;
};

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  AB_FAKE_ENTER();
  fake::state().text = static_cast<const char*>(code);
  ++fake::state().libraries;
  *library = new CUlib_st;
  return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  AB_FAKE_ENTER();
  library->kernels.push_back(std::make_unique<CUkern_st>(CUkern_st{name}));
  *kernel = library->kernels.back().get();
  return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  AB_FAKE_ENTER();
  --fake::state().libraries;
  delete library;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3, void** args, size_t, cudaStream_t) {
  AB_FAKE_ENTER();
  if (fake::state().launched) fake::state().launched(static_cast<const CUkern_st*>(kernel)->name, blocks.x, args);
  return cudaSuccess;
}

}  // extern "C"
