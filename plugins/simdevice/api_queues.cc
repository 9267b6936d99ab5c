#include "process.h"

namespace anabranch::simdevice {
namespace {

int queue_new(int device, int, const char* name, ab_queue** out) {
  return locked([&](Machine& m, Lock&) {
    m.check_device(device);
    given(out, "out");
    auto queue = std::make_unique<ab_queue>();
    queue->id = m.next_queue();
    queue->device = device;
    queue->name = name ? name : std::to_string(queue->id);
    *out = m.queues.add(std::move(queue));
  });
}

int queue_free(ab_queue* queue) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    need(m.idle(q), q.text(), " is freed with ", q.items.size() + q.busy, " items in it");
    need(!q.capture, q.text(), " is freed while it is captured");
    m.queues.remove(q);
  });
}

int queue_mark(ab_queue* queue, const char* text) {
  return locked([&](Machine& m, Lock&) { m.queues.check(queue).mark = text && *text ? m.intern(text) : nullptr; });
}

int event_new(int device, int timed, ab_event** out) {
  return locked([&](Machine& m, Lock&) {
    m.check_device(device);
    given(out, "out") = m.events.add(std::make_unique<ab_event>(ab_event{device, timed != 0, nullptr}));
  });
}

int event_free(ab_event* event) {
  return locked([&](Machine& m, Lock&) { m.events.remove(m.events.check(event)); });
}

int event_record(ab_event* event, ab_queue* queue) {
  return locked([&](Machine& m, Lock&) {
    ab_event& e = m.events.check(event);
    ab_queue& q = m.queues.check(queue);
    need(e.device == q.device, "an event of device ", e.device, " is recorded in ", q.text());
    auto record = std::make_shared<Record>();
    m.put(q, item_of(Item::Kind::kRecord, record));
    e.last = std::move(record);
  });
}

int queue_wait(ab_queue* queue, ab_event* event) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    const ab_event& e = m.events.check(event);
    if (e.last) m.put(q, item_of(Item::Kind::kWait, e.last));
  });
}

// The host may ask only for what will pass.
void check_asked(const Record& record) {
  if (!record.captured) return;
  const char* const why = "the host asks for an event that was recorded in a capture";
  if (const auto capture = record.capture.lock()) capture->breaks(why);
  fail(AB_INVALID_ARGUMENT, why);
}

int event_wait(ab_event* event, int64_t within_ms) {
  return locked([&](Machine& m, Lock& lock) {
    m.check_fault();
    const RecordPtr record = m.events.check(event).last;
    if (!record) return;
    check_asked(*record);
    need(!Comms::in_group(), "a thread waits for an event between comm_group(1) and comm_group(0)");
    m.run_until(
        lock, [&] { return record->passed; }, within_ms);
    m.host_clock.join(record->clock);
  });
}

int event_query(ab_event* event, int* passed, uint64_t* ns) {
  return locked([&](Machine& m, Lock& lock) {
    const ab_event& e = m.events.check(event);
    const bool timed = e.timed;
    const RecordPtr record = e.last;
    given(passed, "passed");
    if (record) check_asked(*record);
    m.run_some(lock);
    *passed = !record || record->passed;
    if (!record || !*passed) return;
    m.host_clock.join(record->clock);
    if (ns && timed) *ns = record->ns;
  });
}

int queue_call(ab_queue* queue, void (*fn)(void* arg, int status), void* arg) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    if (q.capture) {
      q.capture->breaks(q.text() + " got a call of the host while it was captured");
      fail(AB_INVALID_ARGUMENT, q.text(), " got a call of the host while it was captured");
    }
    m.put(q, call_item(fn, arg));
  });
}

int copy(ab_queue* queue, void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    if (bytes) m.put(q, copy_item(m, q, {to, to_device, from, from_device, bytes}));
  });
}

int fill(ab_queue* queue, void* to, int byte, size_t bytes) {
  return locked([&](Machine& m, Lock&) {
    ab_queue& q = m.queues.check(queue);
    if (bytes) m.put(q, fill_item(m, q, to, byte, bytes));
  });
}

}  // namespace

void fill_queues(ab_device_api& api) {
  api.queue_new = queue_new;
  api.queue_free = queue_free;
  api.queue_mark = queue_mark;
  api.event_new = event_new;
  api.event_free = event_free;
  api.event_record = event_record;
  api.queue_wait = queue_wait;
  api.event_wait = event_wait;
  api.event_query = event_query;
  api.queue_call = queue_call;
  api.copy = copy;
  api.fill = fill;
}

}  // namespace anabranch::simdevice
