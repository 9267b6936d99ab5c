#include "fake_runtime.h"

#include <cstdlib>
#include <cstring>

namespace fake {

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess) state().last = error;
  return error;
}

cudaError_t enter(const char* name) {
  State& s = state();
  s.calls.emplace_back(name);
  if (s.sticky) return answer(s.sticky);
  const auto failure = s.failures.find(name);
  if (failure == s.failures.end()) return cudaSuccess;
  const cudaError_t error = failure->second;
  s.failures.erase(failure);
  return answer(error);
}

State& state() {
  static State s;
  return s;
}

}  // namespace fake

using fake::answer;
using fake::state;

extern "C" {

cudaError_t cudaDriverGetVersion(int* v) { return *v = state().driver, cudaSuccess; }
cudaError_t cudaGetLastError() { return std::exchange(state().last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t e) {
  return e == cudaErrorIllegalAddress ? "an illegal access" : "an error";
}
const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}

cudaError_t cudaGetDeviceCount(int* count) {
  AB_FAKE_ENTER();
  *count = state().devices;
  return *count ? cudaSuccess : answer(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  AB_FAKE_ENTER();
  state().current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  state().calls.emplace_back(__func__);
  state().sticky = cudaSuccess;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  AB_FAKE_ENTER();
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? state().major : state().minor;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  AB_FAKE_ENTER();
  strcpy(p->name, "a fake");
  p->major = state().major;
  p->minor = state().minor;
  p->totalGlobalMem = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  AB_FAKE_ENTER();
  *free_bytes = 1 << 19;
  *total = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  AB_FAKE_ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  AB_FAKE_ENTER();
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  AB_FAKE_ENTER();
  return answer(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  AB_FAKE_ENTER();
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  AB_FAKE_ENTER();
  free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  AB_FAKE_ENTER();
  *p = malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  AB_FAKE_ENTER();
  free(p);
  return cudaSuccess;
}

}  // extern "C"
