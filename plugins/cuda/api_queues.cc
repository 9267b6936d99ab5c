#include "handles.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

// Else copies between devices go through the host.
void reach_others(const Process& p, int device) {
  for (int other = 0; other < p.devices; ++other) {
    int can = 0;
    if (other == device || cudaDeviceCanAccessPeer(&can, device, other) != cudaSuccess || !can) continue;
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) well(error, "access of device ", device, " to device ", other);
  }
  (void)cudaGetLastError();
}

int queue_new(int device, int priority, const char* name, ab_queue** out) {
  return called([&](Process& p) {
    p.check_device(device);
    given(out, "out") = nullptr;
    use_device(device);
    reach_others(p, device);
    int least = 0, greatest = 0;  // the greatest is the smallest number
    well(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of device ", device);
    auto queue = std::make_unique<ab_queue>();
    queue->device = device;
    queue->name = name ? name : "without a name";
    well(cudaStreamCreateWithPriority(&queue->stream, cudaStreamNonBlocking, priority > 0 ? greatest : least),
         "a queue of device ", device);
    p.add(queue.get());
    p.made(Thing::kQueues);
    *out = queue.release();
  });
}

int queue_free(ab_queue* queue) {
  return called([&](Process& p) {
    given(queue, "queue");
    const cudaError_t passed = p.faulted() ? cudaSuccess : cudaStreamQuery(queue->stream);
    if (passed == cudaErrorNotReady) {
      (void)cudaGetLastError();
      fail(AB_INVALID_ARGUMENT, queue->text(), " is freed before all that was put into it has passed");
    }
    if (status_of(passed) != AB_FAULT) well(passed, "freeing ", queue->text());
    const cudaError_t destroyed = cudaStreamDestroy(queue->stream);
    p.freed(Thing::kQueues, passed == cudaSuccess ? destroyed : passed, "freeing a queue");
    p.remove(queue);
    delete queue;
  });
}

int queue_mark(ab_queue* queue, const char* text) {
  return called([&](Process&) { given(queue, "queue").set_mark(text); });
}

struct HostCall {
  void (*fn)(void* arg, int status);
  void* arg;
};

void CUDART_CB call_host(cudaStream_t, cudaError_t error, void* data) {
  const std::unique_ptr<HostCall> call(static_cast<HostCall*>(data));
  call->fn(call->arg, error == cudaSuccess ? AB_OK : AB_FAULT);
}

// Not cudaLaunchHostFunc(), which does not call after a fault.
int queue_call(ab_queue* queue, void (*fn)(void* arg, int status), void* arg) {
  return working([&](Process&) {
    given(queue, "queue");
    need(fn != nullptr, "fn must not be null");
    auto call = std::make_unique<HostCall>(HostCall{fn, arg});
    const cudaError_t error = cudaStreamAddCallback(queue->stream, call_host, call.get(), 0);
    if (error == cudaErrorStreamCaptureUnsupported) {
      (void)cudaGetLastError();
      fail(AB_INVALID_ARGUMENT, queue->text(), " got a call of the host while it was captured");
    }
    well(error, "a call of the host");
    (void)call.release();
  });
}

int copy(ab_queue* queue, void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return working([&](Process& p) {
    const ab_queue& q = given(queue, "queue");
    const bool up = from_device == AB_HOST_MEMORY, down = to_device == AB_HOST_MEMORY;
    need(to_device == q.device || from_device == q.device, "a copy from device ", from_device, " to device ", to_device,
         " is put into a queue of device ", q.device);
    if (!up) p.check_device(from_device);
    if (!down) p.check_device(to_device);
    if (!bytes) return;
    need(to && from, "a copy's addresses must not be null");
    use_device(q.device);
    if (!up && !down && to_device != from_device) {
      well(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, q.stream), "copying between devices");
    } else {
      const cudaMemcpyKind kind = up     ? cudaMemcpyHostToDevice
                                  : down ? cudaMemcpyDeviceToHost
                                         : cudaMemcpyDeviceToDevice;
      well(cudaMemcpyAsync(to, from, bytes, kind, q.stream), "copying ", bytes, " bytes");
    }
  });
}

int fill(ab_queue* queue, void* to, int byte, size_t bytes) {
  return working([&](Process&) {
    const ab_queue& q = given(queue, "queue");
    if (!bytes) return;
    need(to != nullptr, "to must not be null");
    use_device(q.device);
    well(cudaMemsetAsync(to, byte, bytes, q.stream), "filling ", bytes, " bytes");
  });
}

}  // namespace

void fill_queues(ab_device_api& api) {
  api.queue_new = queue_new;
  api.queue_free = queue_free;
  api.queue_mark = queue_mark;
  api.queue_call = queue_call;
  api.copy = copy;
  api.fill = fill;
}

}  // namespace anabranch::cuda
