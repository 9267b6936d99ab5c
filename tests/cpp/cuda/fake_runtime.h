// A CUDA runtime on the host, as much of it as the plug-in calls: for tests of what the plug-in itself does. Memory is
// the host's, work runs when it is put in unless it is held back, and any function can be made to fail.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fake {

struct State {
  int devices = 2;
  int driver = 13000;
  int major = 9, minor = 0;
  std::map<std::string, cudaError_t> failures;  // of the next call of a function
  cudaError_t sticky = cudaSuccess;             // of all calls
  cudaError_t last = cudaSuccess;               // what cudaGetLastError() is about to tell
  bool held = false;                            // work waits for let_go()
  double now_ns = 1e9;                          // a recorded event's time
  int current = 0;                              // the device
  std::vector<std::string> calls;               // functions, with what tests ask for
  int libraries = 0;                            // loaded and not unloaded
  std::string text;                             // of the last one
  std::function<void(const std::string& entry, unsigned blocks, void** args)> launched;  // of one of them
};

State& state();
void reset();
void let_go();
bool idle();  // nothing is held back
void put(cudaStream_t stream, std::function<void()> work);

// The check at the start of each function of the runtime, and the error that it returns when it fails by itself.
cudaError_t enter(const char* name);
cudaError_t answer(cudaError_t error);

}  // namespace fake

#define AB_FAKE_ENTER() \
  if (const cudaError_t failed = fake::enter(__func__)) return failed
