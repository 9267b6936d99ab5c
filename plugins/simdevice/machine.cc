#include "machine.h"

#include <algorithm>

#include "put.h"

namespace anabranch::simdevice {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kNsPerItem = 1000;  // simulated time

// Red zones and quarantined blocks take addresses in addition to the memory.
size_t addresses_for(size_t bytes) { return (bytes + bytes / 8 + (size_t{1} << 20) + kPage - 1) / kPage * kPage; }

}  // namespace

Machine::Machine(const ab_host* the_host, const Settings& the_settings)
    : host(the_host),
      settings(the_settings),
      mapping_(std::max(settings.devices, 1), addresses_for(settings.bytes)),
      schedule_(settings.seed, settings.order) {
  for (int device = 0; device < settings.devices; ++device) {
    memories_.push_back(std::make_unique<Memory>(mapping_, device, settings.bytes));
  }
}

Machine::~Machine() {
  attendant_ = nullptr;
  comms.clear();
}

void Machine::attend() {
  if (!attendant_) attendant_ = std::make_unique<Attendant>(*this);
}

void Machine::check_device(int device) const {
  need(device >= 0 && device < settings.devices, "device must be from 0 to ", settings.devices - 1, ", got ", device);
}

Memory& Machine::memory(int device) {
  check_device(device);
  return *memories_[static_cast<size_t>(device)];
}

void Machine::check_fault() const {
  if (fault_) throw *fault_;
}

const std::string* Machine::name(const ab_queue& queue, const Item& item) {
  const std::string what = item.work ? item.work->what() : item.kind == Item::Kind::kWait ? "a wait" : "an event";
  return intern(queue.mark ? said(*queue.mark, " (", what, "), ", queue.text()) : said(what, ", ", queue.text()));
}

void Machine::put(ab_queue& queue, Item item) {
  check_fault();
  if (item.kind == Item::Kind::kWait && item.record->captured) {
    const auto capture = item.record->capture.lock();
    need(capture != nullptr, queue.text(), " waits for an event that was recorded in a capture, which is over");
    if (!queue.capture) capture->join(queue);
  }
  if (queue.capture) {
    queue.capture->add(*this, queue, std::move(item));
  } else {
    append(queue, std::move(item));
  }
}

void Machine::append(ab_queue& queue, Item item, uint64_t asof, const std::string* label) {
  item.number = next_number();
  item.asof = asof ? asof : item.number;
  item.label = label ? label : name(queue, item);
  item.host = host_clock;
  if (item.work) item.work->put(*this, queue, item);
  queue.items.push_back(std::move(item));
  changed_.notify_all();
}

// A wait without a deadline that does not progress is a fault after the time limit: until then another thread may
// enqueue the missing work.
void Machine::run_until(Lock& lock, const std::function<bool()>& there, int64_t within_ms) {
  using Time = std::chrono::steady_clock;
  const bool forever = within_ms < 0;
  const auto span = std::chrono::milliseconds(std::min(forever ? settings.patience_ms : within_ms, int64_t{1} << 40));
  auto limit = Time::now() + span;
  int naps = 0;
  for (uint64_t seen = ns_;;) {
    check_fault();
    if (there()) break;
    bool moves = driven_;  // also if another thread's item ends just when this one's wait does
    if (!driven_ && step(lock)) {
      naps = 0;
    } else {
      moves |= rest(lock, limit, naps++);
    }
    if (forever && (moves || driven_ || ns_ != seen)) {
      seen = ns_;
      limit = Time::now() + span;
    }
    if (Time::now() < limit || there()) continue;
    comms.look();
    if (!forever) fail(AB_TIMED_OUT, "the event has not passed within ", within_ms, " ms: ", standing());
    lose(lock, Failure(AB_FAULT, "deadlock: " + standing()));
  }
  for (int more = schedule_.surplus(); more && !driven_ && step(lock);) --more;
}

// Other processes do not signal this one: a waiting thread polls, at once at first and then less and less often.
bool Machine::rest(Lock& lock, std::chrono::steady_clock::time_point limit, int nap) {
  constexpr int kYields = 20, kDoublings = 4;
  bool elsewhere = false, alive = false;
  for (const auto& queue : queues.all()) {
    const Round* round = queue->items.empty() ? nullptr : queue->items.front().round.get();
    if (driven_ || !round || !round->waits_elsewhere()) continue;
    elsewhere = true;
    alive |= round->group->failure.empty();
  }
  if (!elsewhere) {
    changed_.wait_until(lock, limit);
    return false;
  }
  comms.look();
  if (nap < kYields) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  } else {
    changed_.wait_for(lock, std::chrono::microseconds(50) * (1 << std::min(nap - kYields, kDoublings)));
  }
  return alive;
}

void Machine::run_some(Lock& lock) {
  check_fault();
  for (int more = 1 + schedule_.surplus(); more && !driven_ && step(lock);) --more;
  check_fault();
}

bool Machine::ready(const ab_queue& queue) const {
  if (queue.items.empty() || queue.busy) return false;
  const Item& item = queue.items.front();
  if (item.kind == Item::Kind::kWait) return item.record->passed;
  if (item.kind != Item::Kind::kCollective) return true;
  return item.round->next() != Round::Next::kNothing;
}

bool Machine::step(Lock& lock) {
  std::vector<Candidate> candidates;
  std::vector<ab_queue*> ready_queues;
  for (const auto& queue : queues.all()) {
    if (!ready(*queue)) continue;
    candidates.push_back({queue->id, queue->items.front().number});
    ready_queues.push_back(queue.get());
  }
  if (candidates.empty()) return false;
  ab_queue& queue = *ready_queues[schedule_.choose(candidates, queue_count_)];
  const std::shared_ptr<Round> round = queue.items.front().round;
  driven_ = true;
  ns_ += kNsPerItem;
  const auto next = round ? round->next() : Round::Next::kGiveUp;
  if (next == Round::Next::kBegin) {
    begin_round(lock, *round);
  } else if (next == Round::Next::kRun) {
    run_round(lock, *round);
  } else {
    run_item(lock, queue);
  }
  driven_ = false;
  changed_.notify_all();
  return true;
}

void Machine::run_item(Lock& lock, ab_queue& queue) {
  Item item = std::move(queue.items.front());
  queue.items.pop_front();
  queue.clock.join(item.host);
  queue.clock.advance(queue.id);
  if (item.kind == Item::Kind::kWait) {
    queue.clock.join(item.record->clock);
  } else if (item.kind == Item::Kind::kRecord) {
    item.record->clock = queue.clock;
    item.record->ns = ns_;
    item.record->passed = true;
  } else {
    Running running(*this, queue, item);
    queue.busy = true;
    work(lock, item, [&] { item.work->run(running), running.check_zones(); });
    queue.busy = false;
  }
}

void Machine::work(Lock& lock, Item& item, const std::function<void()>& run) {
  std::unique_ptr<Failure> why;
  lock.unlock();
  try {
    run();
  } catch (const Failure& e) {
    why = std::make_unique<Failure>(AB_FAULT, e.what());
  } catch (const std::exception& e) {
    why = std::make_unique<Failure>(AB_FAULT, said(e.what(), " in ", *item.label));
  }
  lock.lock();
  item.work->over(*this, item);
  if (why) lose(lock, *why);
}

// Items in queues no longer run.
void Machine::lose(Lock& lock, const Failure& why) {
  if (!fault_) fault_ = std::make_unique<Failure>(why);
  std::vector<Item> dropped;
  for (const auto& queue : queues.all()) {
    for (Item& item : queue->items) dropped.push_back(std::move(item));
    queue->items.clear();
  }
  for (Item& item : dropped) {
    if (item.work) item.work->over(*this, item);
  }
  const bool driven = std::exchange(driven_, true);
  lock.unlock();
  for (Item& item : dropped) {
    if (item.work) item.work->drop();
  }
  lock.lock();
  driven_ = driven;
  changed_.notify_all();
}

}  // namespace anabranch::simdevice
