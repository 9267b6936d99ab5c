#include "fake_runtime.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

using Work = std::function<void()>;

struct CUstream_st {
  int device;
  int priority;
  struct Capture* capture = nullptr;
};

struct CUevent_st {
  bool timed;
  bool passed = true;
  double ns = 0;
  struct Capture* capture = nullptr;
  cudaStream_t recorded_in = nullptr;
};

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};

struct Capture {
  cudaStream_t origin;
  std::vector<Work> work;
  std::set<cudaStream_t> joined;  // and not waited for
  bool broken = false;
};

namespace fake {
namespace {

std::deque<Work> waiting;

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

}  // namespace

State& state() {
  static State s;
  return s;
}

void reset() {
  state() = {};
  waiting.clear();
}

void let_go() {
  state().held = false;
  while (!waiting.empty()) {
    Work work = std::move(waiting.front());
    waiting.pop_front();
    work();
  }
}

void put(cudaStream_t stream, Work work) {
  if (stream->capture) {
    stream->capture->work.push_back(std::move(work));
  } else if (state().held) {
    waiting.push_back(std::move(work));
  } else {
    work();
  }
}

}  // namespace fake

using fake::answer;
using fake::state;

#define ENTER() \
  if (const cudaError_t failed = fake::enter(__func__)) return failed

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
  ENTER();
  *count = state().devices;
  return *count ? cudaSuccess : answer(cudaErrorNoDevice);
}
cudaError_t cudaSetDevice(int device) {
  ENTER();
  state().current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceReset() {
  state().calls.emplace_back(__func__);
  state().sticky = cudaSuccess;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  ENTER();
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? state().major : state().minor;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  ENTER();
  strcpy(p->name, "a fake");
  p->major = state().major;
  p->minor = state().minor;
  p->totalGlobalMem = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  ENTER();
  *free_bytes = 1 << 19;
  *total = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  ENTER();
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  ENTER();
  return answer(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMalloc(void** p, size_t bytes) {
  ENTER();
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  ENTER();
  free(p);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  ENTER();
  *p = malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  ENTER();
  free(p);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int priority) {
  ENTER();
  state().calls.push_back("priority " + std::to_string(priority));
  *s = new CUstream_st{state().current, priority};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  ENTER();
  *s = new CUstream_st{state().current, 0};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  ENTER();
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  ENTER();
  if (s->capture) return answer(cudaErrorStreamCaptureUnsupported);
  return fake::waiting.empty() ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  ENTER();
  *status = s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t fn, void* data, unsigned) {
  ENTER();
  if (s->capture) {
    s->capture->broken = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  fake::put(s, [=] { fn(s, state().sticky, data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  ENTER();
  *e = new CUevent_st{!(flags & cudaEventDisableTiming)};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  ENTER();
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  ENTER();
  e->capture = s->capture;
  e->recorded_in = s;
  if (s->capture) return cudaSuccess;
  e->passed = false;
  fake::put(s, [e] {
    e->passed = true;
    e->ns = state().now_ns;
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  ENTER();
  if (!e->capture) return cudaSuccess;
  if (!s->capture) {
    s->capture = e->capture;
    s->capture->joined.insert(s);
  }
  if (s == s->capture->origin) s->capture->joined.erase(e->recorded_in);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  ENTER();
  if (e->capture) return answer(cudaErrorCapturedEvent);
  return e->passed ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  ENTER();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  ENTER();
  if (!from->timed || !to->timed) return answer(cudaErrorInvalidResourceHandle);
  *ms = static_cast<float>((to->ns - from->ns) / 1e6);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  ENTER();
  state().calls.push_back("kind " + std::to_string(kind));
  fake::put(s, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t s) {
  ENTER();
  fake::put(s, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t s) {
  ENTER();
  fake::put(s, [=] { memset(to, byte, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int byte, size_t width, size_t height, cudaStream_t s) {
  ENTER();
  fake::put(s, [=] {
    for (size_t row = 0; row < height; ++row) memset(static_cast<char*>(to) + row * pitch, byte, width);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  ENTER();
  if (s->capture) return answer(cudaErrorIllegalState);
  state().calls.push_back("mode " + std::to_string(mode));
  s->capture = new Capture{s, {}, {}};  // events that were recorded in it go on pointing there
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  ENTER();
  *graph = nullptr;
  if (!s->capture) return answer(cudaErrorIllegalState);
  Capture& capture = *s->capture;
  s->capture = nullptr;
  const bool open = !capture.joined.empty();
  for (const cudaStream_t joined : capture.joined) joined->capture = nullptr;
  if (capture.broken) return answer(cudaErrorStreamCaptureInvalidated);
  if (open) return answer(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{capture.work};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  ENTER();
  *exec = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  ENTER();
  for (const Work& work : exec->work) fake::put(s, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  ENTER();
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
