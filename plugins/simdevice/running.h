// An item while it runs: the memory it may access, and the record of its accesses.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "audit.h"
#include "machine.h"
#include "writes.h"

namespace anabranch::simdevice {

class Running {
 public:
  // The queue's clock has advanced to the item.
  Running(Machine& machine, ab_queue& queue, const Item& item);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  static Running& here();  // of this thread; AB_FAULT if nothing runs on it

  // The CPU's address of device memory. AB_FAULT if it is not live, not on the device, younger than the item's
  // arguments, or in use by an access that no event orders with this item. device: usually the queue's.
  char* touch(const void* address, size_t bytes, ab_access how) { return touch(queue_.device, address, bytes, how); }
  char* touch(int device, const void* address, size_t bytes, ab_access how);
  char* touch_pinned(const void* address, size_t bytes, ab_access how);
  void check_zones();  // AB_FAULT if the item wrote beyond a block

  const std::vector<WrittenRange>& written() const { return written_; }  // without atomically updated memory
  const Item& item() const { return item_; }
  bool has_lanes() const { return machine_.settings.lanes; }
  // seed of the order within it
  uint64_t seed() const { return machine_.settings.seed * 0x100000001b3u + item_.number; }

 private:
  void refuse(const Access& other, const std::string& what);

  Machine& machine_;
  ab_queue& queue_;
  const Item& item_;
  const Access now_;
  const Clock clock_;
  std::vector<std::pair<int, const void*>> touched_;
  std::vector<WrittenRange> written_;
  Running* const outer_;
};

}  // namespace anabranch::simdevice
