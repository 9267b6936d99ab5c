#include <algorithm>
#include <chrono>
#include <thread>

#include "handles.h"
#include "process.h"

namespace anabranch::cuda {
namespace {

bool has_passed(const ab_event& event) {
  const cudaError_t error = cudaEventQuery(event.event);
  if (error == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  if (error == cudaErrorCapturedEvent) {
    (void)cudaGetLastError();
    fail(AB_INVALID_ARGUMENT, "the host asks for an event that was recorded in a capture");
  }
  well(error, "an event of device ", event.device);
  return true;
}

int event_new(int device, int timed, ab_event** out) {
  return called([&](Process& p) {
    p.check_device(device);
    given(out, "out") = nullptr;
    use_device(device);
    auto event = std::make_unique<ab_event>(ab_event{device, timed != 0});
    well(cudaEventCreateWithFlags(&event->event, timed ? cudaEventDefault : cudaEventDisableTiming),
         "an event of device ", device);
    p.made(Thing::kEvents);
    *out = event.release();
  });
}

int event_free(ab_event* event) {
  return called([&](Process& p) {
    p.freed(Thing::kEvents, cudaEventDestroy(given(event, "event").event), "freeing an event");
    delete event;
  });
}

int event_record(ab_event* event, ab_queue* queue) {
  return working([&](Process& p) {
    ab_event& e = given(event, "event");
    const ab_queue& q = given(queue, "queue");
    need(e.device == q.device, "an event of device ", e.device, " is recorded in a queue of device ", q.device);
    use_device(q.device);
    if (e.timed) e.since = p.clock(e.device).recent();
    well(cudaEventRecord(e.event, q.stream), "recording an event");
  });
}

int queue_wait(ab_queue* queue, ab_event* event) {
  return working([&](Process&) {
    well(cudaStreamWaitEvent(given(queue, "queue").stream, given(event, "event").event, 0), "waiting for an event");
  });
}

// CUDA has no wait with a deadline. Most waits are for a step, so the thread polls for that long, because a sleeping
// thread wakes up 50 microseconds late. Afterwards it polls less and less often.
int event_wait(ab_event* event, int64_t within_ms) {
  return working([&](Process& p) {
    using std::chrono::steady_clock, std::chrono::microseconds;
    const ab_event& e = given(event, "event");
    const steady_clock::time_point begin = steady_clock::now();
    microseconds rest{0};
    while (!has_passed(e)) {
      p.check_fault();  // found by another thread
      const auto waited = steady_clock::now() - begin;
      if (within_ms >= 0 && waited >= std::chrono::milliseconds(within_ms)) {
        fail(AB_TIMED_OUT, "an event of device ", e.device, " has not passed after ", within_ms, " ms");
      }
      if (waited < microseconds(2000)) {
        std::this_thread::yield();
      } else {
        rest = std::min(rest + microseconds(5), microseconds(100));
        std::this_thread::sleep_for(rest);
      }
    }
  });
}

int event_query(ab_event* event, int* passed, uint64_t* ns) {
  return working([&](Process&) {
    const ab_event& e = given(event, "event");
    given(passed, "passed") = has_passed(e);
    if (ns && *passed && e.since) *ns = Clock::ns(*e.since, e.event);
  });
}

}  // namespace

void fill_events(ab_device_api& api) {
  api.event_new = event_new;
  api.event_free = event_free;
  api.event_record = event_record;
  api.queue_wait = queue_wait;
  api.event_wait = event_wait;
  api.event_query = event_query;
}

}  // namespace anabranch::cuda
