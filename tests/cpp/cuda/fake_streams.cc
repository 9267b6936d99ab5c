// Queues, events, copies and captures of the fake runtime.
#include <cstring>
#include <deque>
#include <set>

#include "fake_runtime.h"

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

}  // namespace

void reset() {
  state() = {};
  waiting.clear();
}

bool idle() { return waiting.empty(); }

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

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int priority) {
  AB_FAKE_ENTER();
  state().calls.push_back("priority " + std::to_string(priority));
  *s = new CUstream_st{state().current, priority};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  AB_FAKE_ENTER();
  *s = new CUstream_st{state().current, 0};
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  AB_FAKE_ENTER();
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  AB_FAKE_ENTER();
  if (s->capture) return answer(cudaErrorStreamCaptureUnsupported);
  return fake::idle() ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  AB_FAKE_ENTER();
  *status = s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t fn, void* data, unsigned) {
  AB_FAKE_ENTER();
  if (s->capture) {
    s->capture->broken = true;
    return answer(cudaErrorStreamCaptureUnsupported);
  }
  fake::put(s, [=] { fn(s, state().sticky, data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  AB_FAKE_ENTER();
  *e = new CUevent_st{!(flags & cudaEventDisableTiming)};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  AB_FAKE_ENTER();
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  AB_FAKE_ENTER();
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
  AB_FAKE_ENTER();
  if (!e->capture) return cudaSuccess;
  if (!s->capture) {
    s->capture = e->capture;
    s->capture->joined.insert(s);
  }
  if (s == s->capture->origin) s->capture->joined.erase(e->recorded_in);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  AB_FAKE_ENTER();
  if (e->capture) return answer(cudaErrorCapturedEvent);
  return e->passed ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  AB_FAKE_ENTER();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  AB_FAKE_ENTER();
  if (!from->timed || !to->timed) return answer(cudaErrorInvalidResourceHandle);
  *ms = static_cast<float>((to->ns - from->ns) / 1e6);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  AB_FAKE_ENTER();
  state().calls.push_back("kind " + std::to_string(kind));
  fake::put(s, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t s) {
  AB_FAKE_ENTER();
  fake::put(s, [=] { memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t s) {
  AB_FAKE_ENTER();
  fake::put(s, [=] { memset(to, byte, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int byte, size_t width, size_t height, cudaStream_t s) {
  AB_FAKE_ENTER();
  fake::put(s, [=] {
    for (size_t row = 0; row < height; ++row) memset(static_cast<char*>(to) + row * pitch, byte, width);
  });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  AB_FAKE_ENTER();
  if (s->capture) return answer(cudaErrorIllegalState);
  state().calls.push_back("mode " + std::to_string(mode));
  s->capture = new Capture{s, {}, {}};  // events that were recorded in it go on pointing there
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  AB_FAKE_ENTER();
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
  AB_FAKE_ENTER();
  *exec = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) {
  AB_FAKE_ENTER();
  for (const Work& work : exec->work) fake::put(s, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  AB_FAKE_ENTER();
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
