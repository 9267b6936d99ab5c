// Pools of device memory: allocating and freeing can cost a wait for the whole device, so blocks are kept and reused.
// They have few sizes, so that a free one fits the next request.
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

size_t block_bytes(size_t bytes);  // size of the block that serves a request of this size

// Of one device, or pinned memory of the host. Any thread.
class Pool {
 public:
  Pool(Devices& devices, Place place) : devices_(devices), place_(place) {}
  // Aligned to 256 bytes. ResourceExhausted, with a list of the holders (device/purpose.h), if there is no room even
  // after kept blocks are returned to the device. The last owner need not wait for the device: the block is reused only
  // after all work that was in queues has passed.
  std::shared_ptr<void> allocate(size_t bytes);
  int64_t used() const;  // bytes in use
  int64_t kept() const;  // bytes kept for reuse

 private:
  void* take(size_t rounded);
  void* take_free(size_t rounded);
  void* make(size_t rounded);
  [[noreturn]] void tell_full(size_t rounded, const std::string& limit, int64_t given_back) const;
  void give_back(void* block, size_t rounded) noexcept;
  std::pair<int, int> users() const;  // devices [first, end) whose queues may name the memory
  bool idle() const;                  // whether they are idle
  void settle();
  void release_free();

  Devices& devices_;
  const Place place_;
  mutable std::mutex mutex_;
  std::multimap<size_t, void*> free_;
  std::vector<std::pair<size_t, void*>> resting_;  // released since the last wait for the devices
  Holders holders_;
  int64_t used_ = 0, kept_ = 0;
};

// Memory of a device, or pinned.
std::shared_ptr<void> allocate(Place place, size_t bytes);
// Between places, at least one of them a device. Returns when the bytes have arrived.
void copy_bytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes);

}  // namespace anabranch::device
