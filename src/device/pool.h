// Memory of devices, kept for use again: making and ending it may cost a wait for the whole device. Blocks have few
// sizes, so that one fits the next that asks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/holders.h"
#include "device/place.h"

namespace anabranch::device {

class Devices;

size_t block_bytes(size_t bytes);  // of the block that is given to whoever asks for this much

// Of one device, or pinned memory of the host. Any thread.
class Pool {
 public:
  Pool(Devices& devices, Place place) : devices_(devices), place_(place) {}
  // Aligned to 256 bytes. ResourceExhausted, with who holds what (device/purpose.h), when there is no room, even after
  // the device has back what is kept. Who drops the last pointer need not have waited for the device: the block is
  // given out again only after everything has passed that was in queues.
  std::shared_ptr<void> allocate(size_t bytes);
  int64_t used() const;  // bytes that somebody holds
  int64_t kept() const;  // and those that wait for use again

 private:
  void* take(size_t rounded);
  void* take_free(size_t rounded);
  void* make(size_t rounded);
  [[noreturn]] void tell_full(size_t rounded, const std::string& limit, int64_t given_back) const;
  void give_back(void* block, size_t rounded) noexcept;
  std::pair<int, int> users() const;  // devices [first, end) whose queues may name the memory
  bool idle() const;                  // they
  void settle();
  void release_free();

  Devices& devices_;
  const Place place_;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  std::vector<std::pair<size_t, void*>> resting_;  // given back since the devices were last waited for
  Holders holders_;
  int64_t used_ = 0, kept_ = 0;
};

// Memory at a device, or pinned.
std::shared_ptr<void> allocate(Place place, size_t bytes);
// Between places of which at least one is a device. Returns when the bytes are there.
void copy_bytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes);

}  // namespace anabranch::device
