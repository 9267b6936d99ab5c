#include "device/communicator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/futex_mutex.h"
#include "device/pool.h"

namespace anabranch::device {
namespace {

constexpr const char* kDoing = "computing over devices";

// Held for each run of any communicator and while one is created or destroyed. Uncontended, it needs no system call.
FutexMutex one_launch;

// Never destroyed, like the devices.
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
  const std::lock_guard lock(one_launch);
  std::shared_ptr<Communicator>& found = known().communicators[{devices, number}];
  if (found && found->works()) return found;
  const std::shared_ptr<Communicator> made(new Communicator(devices, number));
  made->join_all(new_id(), 0, static_cast<int>(devices.size()));
  return found = made;
}

Communicator::Id Communicator::new_id() {
  Id id;
  const Devices& devices = Devices::get();
  devices.check(devices.api().comm_id(id.bytes), "naming a communicator");
  return id;
}

void Communicator::check_there() { Together(Devices::get()).end(); }

// Not under the lock: other ranks may be late, and runs of other communicators go on.
std::shared_ptr<Communicator> Communicator::join(const std::vector<int>& devices, int number, const Id& id, int first,
                                                 int total) {
  std::shared_ptr<Communicator> made;
  {
    const std::lock_guard lock(one_launch);
    made.reset(new Communicator(devices, number));
  }
  made->join_all(id, first, total);
  return made;
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
}

void Communicator::join_all(const Id& id, int first, int total) {
  Together together(devices_);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const int rank = first + static_cast<int>(r);
    devices_.check(devices_.api().comm_new(ranks_[r].device, id.bytes, rank, total, &ranks_[r].comm),
                   "joining devices");
  }
  together.end();
}

Communicator::~Communicator() { give_up(); }

void Communicator::leave() noexcept {
  works_ = false;
  for (Rank& rank : ranks_) {
    if (rank.comm) devices_.api().comm_free(std::exchange(rank.comm, nullptr), 1);
  }
}

void Communicator::abort() noexcept {
  const std::lock_guard lock(one_launch);
  leave();
}

// Ranks that have started would wait for the others for ever. Returns when no call is running any more.
void Communicator::give_up() noexcept {
  leave();
  for (const Rank& rank : ranks_) {
    if (!rank.ended) continue;
    try {
      rank.ended->record(rank.queue);
      rank.ended->wait();
    } catch (const std::exception&) {  // the error that led here is the one to report
    }
  }
}

// Ranks without data contribute zeros: in place, or from memory that is never written.
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
  AB_CHECK(first != ranks_.end(), Internal, "device {} is not one of those that compute together", device);
  first->begun->record(queue);
  for (const Rank& rank : ranks_) first->begun->hold(rank.queue);
  for (const Call& call : calls) prepare(call);
  Together together(devices_);
  for (const Call& call : calls) put(call);
  together.end();
  follow(queue);
}

void Communicator::run(ab_queue* queue, int device, std::span<const Call> calls, int* failed) {
  const std::lock_guard lock(one_launch);
  AB_CHECK(works(), Unavailable, "devices no longer compute together, because another run has failed");
  try {
    run_all(queue, device, calls);
  } catch (...) {
    if (failed) check_ranks(failed);
    leave();
    try {
      follow(queue);
    } catch (const std::exception&) {  // the error that led here is the one to report
    }
    throw;
  }
}

// Does not wait: `queue` may itself wait for another communicator, which its caller has yet to give up.
void Communicator::follow(ab_queue* queue) const {
  for (const Rank& rank : ranks_) {
    rank.ended->record(rank.queue);
    rank.ended->hold(queue);
  }
}

void Communicator::wait(std::span<Lookout* const> lookouts) const {
  for (const Rank& rank : ranks_) rank.ended->wait(lookouts);
}

bool Communicator::passed() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended->passed(); });
}

std::string Communicator::failure(int* rank) {
  const std::lock_guard lock(one_launch);
  return check_ranks(rank);
}

std::string Communicator::check_ranks(int* rank) const {
  for (const Rank& own : ranks_) {
    *rank = -1;
    if (own.comm && devices_.api().comm_check(own.comm, rank) != AB_OK) {
      char text[512];
      devices_.api().last_error(text, sizeof(text));
      return text;
    }
  }
  return {};
}

}  // namespace anabranch::device
