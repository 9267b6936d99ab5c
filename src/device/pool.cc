#include "device/pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "device/devices.h"
#include "device/event.h"
#include "device/limit.h"
#include "device/purpose.h"

namespace anabranch::device {
namespace {

constexpr int64_t kIdleMs = 1;  // poll interval for an idle device
constexpr size_t kLeast = 512, kLarge = size_t{1} << 20, kStep = size_t{2} << 20;

}  // namespace

size_t block_bytes(size_t bytes) {
  if (bytes > kLarge) return (bytes + kStep - 1) / kStep * kStep;
  return std::bit_ceil(std::max(bytes, kLeast));
}

std::shared_ptr<void> Pool::allocate(size_t bytes) {
  const size_t rounded = block_bytes(bytes);
  std::string purpose = Purpose::now();
  const std::lock_guard lock(mutex_);
  void* block = take(rounded);
  holders_.add(block, static_cast<int64_t>(rounded), std::move(purpose));
  used_ += static_cast<int64_t>(rounded);
  return {block, [this, rounded](void* p) { give_back(p, rounded); }};
}

void* Pool::take(size_t rounded) {
  if (void* block = take_free(rounded)) return block;
  // Blocks released by a run in progress are not waited for while the device has other memory: such a wait could depend
  // on other processes, if the run adds up with them.
  const bool rests = std::any_of(resting_.begin(), resting_.end(), [&](auto& block) { return block.first == rounded; });
  if (rests && idle()) {
    settle();
    return take_free(rounded);
  }
  return make(rounded);
}

void* Pool::take_free(size_t rounded) {
  const auto found = free_.find(rounded);
  if (found == free_.end()) return nullptr;
  void* block = found->second;
  kept_ -= static_cast<int64_t>(rounded);
  free_.erase(found);
  return block;
}

void* Pool::make(size_t rounded) {
  const ab_device_api& api = devices_.api();
  void* block = nullptr;
  const Limit limit = place_.on_host() ? Limit{} : limit_of(devices_, place_.id);
  const auto ask = [&]() -> int {
    if (!place_.on_host() && used_ + kept_ + static_cast<int64_t>(rounded) > limit.bytes) return AB_RESOURCE_EXHAUSTED;
    return place_.on_host() ? api.allocate_pinned(rounded, &block) : api.allocate(place_.id, rounded, &block);
  };
  int status = ask();
  const int64_t kept = kept_;
  if (status == AB_RESOURCE_EXHAUSTED && !(free_.empty() && resting_.empty())) {
    if (!resting_.empty()) settle();
    if (void* rested = take_free(rounded)) return rested;
    release_free();
    status = ask();
  }
  if (status == AB_RESOURCE_EXHAUSTED) tell_full(rounded, limit.says, kept - kept_);
  devices_.check(status, "allocating memory");
  return block;
}

void Pool::tell_full(size_t rounded, const std::string& limit, int64_t given_back) const {
  Error error(ErrorKind::kResourceExhausted,
              fmt::format("{}: cannot allocate {} bytes: {} are in use{}{}", place_.str(), rounded, used_,
                          limit.empty() ? "" : "; ", limit));
  error.with_note("requested for " + Purpose::now());
  holders_.tell(&error);
  error.with_note(fmt::format("kept   {:>12} bytes, after {} were given back to the device", kept_, given_back));
  throw error;
}

void Pool::give_back(void* block, size_t rounded) noexcept {
  const std::lock_guard lock(mutex_);
  holders_.remove(block);
  used_ -= static_cast<int64_t>(rounded);
  kept_ += static_cast<int64_t>(rounded);
  resting_.emplace_back(rounded, block);
}

// Any device may copy from or to pinned memory.
std::pair<int, int> Pool::users() const {
  if (place_.on_host()) return {0, devices_.count()};
  return {place_.id, place_.id + 1};
}

bool Pool::idle() const {
  const auto [first, end] = users();
  for (int d = first; d < end; ++d) {
    for (const QueueKind kind : {QueueKind::kCompute, QueueKind::kUp, QueueKind::kDown}) {
      Event event(devices_, d);
      event.record(devices_.queue(d, kind));
      if (!event.passes_within(kIdleMs)) return false;
    }
  }
  return true;
}

void Pool::settle() {
  const auto [first, end] = users();
  for (int d = first; d < end; ++d) devices_.wait(d);
  free_.insert(resting_.begin(), resting_.end());
  resting_.clear();
}

void Pool::release_free() {
  const ab_device_api& api = devices_.api();
  for (const auto& [bytes, block] : free_) {
    devices_.check(place_.on_host() ? api.release_pinned(block) : api.release(place_.id, block), "releasing memory");
    kept_ -= static_cast<int64_t>(bytes);
  }
  free_.clear();
}

int64_t Pool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

int64_t Pool::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

std::shared_ptr<void> allocate(Place place, size_t bytes) {
  Devices& devices = Devices::get();
  if (place.on_host()) return devices.pinned_pool().allocate(bytes);
  devices.check_device(place.id);
  return devices.pool(place.id).allocate(bytes);
}

void copy_bytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes) {
  if (bytes == 0) return;
  Devices& devices = Devices::get();
  const int device = from_place.on_host() ? to_place.id : from_place.id;
  devices.wait(device);  // work in the queues may still use the memory
  ab_queue* queue = devices.queue(device, QueueKind::kCompute);
  // Only copies use pinned memory.
  std::shared_ptr<void> staged;
  if (from_place.on_host() || to_place.on_host()) staged = devices.pinned_pool().allocate(bytes);
  if (from_place.on_host()) std::memcpy(staged.get(), from, bytes);
  devices.check(
      devices.api().copy(queue, to_place.on_host() ? staged.get() : to,
                         to_place.on_host() ? AB_HOST_MEMORY : to_place.id, from_place.on_host() ? staged.get() : from,
                         from_place.on_host() ? AB_HOST_MEMORY : from_place.id, bytes),
      "copying");
  devices.wait(device);
  if (to_place.on_host()) std::memcpy(to, staged.get(), bytes);
}

}  // namespace anabranch::device
