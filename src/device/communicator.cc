#include "device/communicator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/turn_lock.h"
#include "device/pool.h"

namespace anabranch::device {
namespace {

constexpr const char* kDoing = "computing over devices";

// Taken for each run of any communicator, and by who makes or ends one. Without others who want it, it is no call.
TurnLock turn;

// Never ended: the devices are not, either.
struct Known {
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<Communicator>> communicators;
  std::map<std::pair<int, int>, ab_queue*> queues;  // by device and number
};
Known& known() {
  static auto* all = new Known();
  return *all;
}

// Calls of one thread for several ranks.
class Together {
 public:
  explicit Together(const Devices& devices) : devices_(devices) {
    devices_.check(devices_.api().comm_group(1), kDoing);
  }
  ~Together() {
    if (open_) devices_.api().comm_group(0);
  }
  Together(const Together&) = delete;
  void end() {
    open_ = false;
    devices_.check(devices_.api().comm_group(0), kDoing);
  }

 private:
  const Devices& devices_;
  bool open_ = true;
};

}  // namespace

std::shared_ptr<Communicator> Communicator::of(const std::vector<int>& devices, int number) {
  const std::lock_guard lock(turn);
  std::shared_ptr<Communicator>& found = known().communicators[{devices, number}];
  if (!found || !found->works()) found.reset(new Communicator(devices, number));
  return found;
}

Communicator::Communicator(const std::vector<int>& devices, int number)
    : devices_(Devices::get()), ranks_(devices.size()) {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    devices_.check_device(rank.device = devices[r]);
    ab_queue*& queue = known().queues[{rank.device, number}];
    if (!queue) devices_.check(devices_.api().queue_new(rank.device, 1, "sums", &queue), "making a queue");
    rank.queue = queue;
    rank.begun = std::make_unique<Event>(devices_, rank.device);
    rank.ended = std::make_unique<Event>(devices_, rank.device);
  }
  try {
    join_all();
  } catch (...) {
    give_up();
    throw;
  }
}

void Communicator::join_all() {
  const ab_device_api& api = devices_.api();
  const int count = static_cast<int>(ranks_.size());
  char id[128];
  devices_.check(api.comm_id(id), "naming a communicator");
  Together together(devices_);
  for (int r = 0; r < count; ++r) {
    devices_.check(api.comm_new(ranks_[r].device, id, r, count, &ranks_[r].comm), "joining devices");
  }
  together.end();
}

Communicator::~Communicator() { give_up(); }

// Ranks that have begun would wait for the others for ever. Returns when nothing is under way any more.
void Communicator::give_up() noexcept {
  works_ = false;
  for (Rank& rank : ranks_) {
    if (rank.comm) devices_.api().comm_free(std::exchange(rank.comm, nullptr), 1);
  }
  for (const Rank& rank : ranks_) {
    if (!rank.ended) continue;
    try {
      rank.ended->record(rank.queue);
      rank.ended->wait();
    } catch (const std::exception&) {  // what led here is the error to tell
    }
  }
}

// Ranks that have nothing to give take part with zeros: in place, or from memory that nobody writes.
void Communicator::prepare(const Call& call) {
  if (call.what == AB_BROADCAST) return;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const Part& part = call.parts[r];
    if (part.send || call.bytes == 0) continue;
    if (part.recv) {
      devices_.check(devices_.api().fill(rank.queue, part.recv, 0, call.bytes), "filling with zeros");
    } else if (call.bytes > rank.zero_bytes) {
      rank.zeros = allocate(Place::cuda(rank.device), call.bytes);
      rank.zero_bytes = call.bytes;
      devices_.check(devices_.api().fill(rank.queue, rank.zeros.get(), 0, call.bytes), "filling with zeros");
    }
  }
}

void Communicator::put(const Call& call) {
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Part& part = call.parts[r];
    const Rank& rank = ranks_[r];
    const void* send = part.send;
    if (!send && call.what != AB_BROADCAST) send = part.recv ? part.recv : rank.zeros.get();
    devices_.check(
        devices_.api().comm_run(rank.comm, rank.queue, call.what, send, part.recv, call.count, call.dtype, call.root),
        kDoing);
  }
}

void Communicator::run_all(ab_queue* queue, int device, std::span<const Call> calls) {
  const auto first = std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return r.device == device; });
  AB_CHECK(first != ranks_.end(), Internal, "device {} is none of those that compute together", device);
  first->begun->record(queue);
  for (const Rank& rank : ranks_) first->begun->hold(rank.queue);
  for (const Call& call : calls) prepare(call);
  Together together(devices_);
  for (const Call& call : calls) put(call);
  together.end();
  for (const Rank& rank : ranks_) {
    rank.ended->record(rank.queue);
    rank.ended->hold(queue);
  }
}

void Communicator::run(ab_queue* queue, int device, std::span<const Call> calls) {
  const std::lock_guard lock(turn);
  AB_CHECK(works(), Unavailable, "devices compute together no more, after a failure of another run");
  try {
    run_all(queue, device, calls);
  } catch (...) {
    give_up();
    throw;
  }
}

void Communicator::wait() const {
  for (const Rank& rank : ranks_) rank.ended->wait();
}

}  // namespace anabranch::device
