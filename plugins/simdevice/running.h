// An item while it runs: what it may see of memory, and what is noted of it.
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
  // The queue's clock has been moved on to the item.
  Running(Machine& machine, ab_queue& queue, const Item& item);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  static Running& here();  // of this thread; AB_FAULT when nothing runs on it

  // Where the CPU finds device memory. AB_FAULT when it is not live, not of the device, younger than the item's
  // arguments, or in use by somebody whom no event orders with this item. device: usually the queue's.
  char* touch(const void* address, size_t bytes, ab_access how) { return touch(queue_.device, address, bytes, how); }
  char* touch(int device, const void* address, size_t bytes, ab_access how);
  char* touch_pinned(const void* address, size_t bytes, ab_access how);
  void check_zones();  // AB_FAULT when the item wrote beyond a block

  const std::vector<WrittenRange>& written() const { return written_; }  // not what all may add to
  const Item& item() const { return item_; }
  bool has_lanes() const { return machine_.settings.lanes; }
  uint64_t seed() const { return machine_.settings.seed * 0x100000001b3u + item_.number; }  // of the order within it

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
