#include "memory.h"

#include <cstring>
#include <iterator>

#include "failure.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define AB_CLOSE(p, n) __asan_poison_memory_region(p, n)
#define AB_OPEN(p, n) __asan_unpoison_memory_region(p, n)
#else
#define AB_CLOSE(p, n) static_cast<void>(p)
#define AB_OPEN(p, n) static_cast<void>(p)
#endif

namespace anabranch::simdevice {
namespace {

constexpr size_t kAlignment = 256, kRedZone = 256, kRest = 64;
uint64_t next_number = 0;  // guarded by the machine's lock

size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void poison(char* begin, size_t bytes) {
  for (size_t i = 0; i + 1 < bytes; i += 2) memcpy(begin + i, &kPoison, 2);
  if (bytes % 2) memcpy(begin + bytes - 1, &kPoison, 1);
}

bool poisoned(const char* begin, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (begin[i] != reinterpret_cast<const char*>(&kPoison)[i % 2]) return false;
  }
  return true;
}

// The sanitizer remembers poisoned addresses, which the next mapping may get.
Memory::~Memory() { AB_OPEN(mapping_.host(device_, 0), end_); }

void* Memory::allocate(size_t bytes, uint64_t born) {
  const size_t span = rounded(bytes) + kRedZone;
  if (bytes > total_ - used_) {
    fail(AB_RESOURCE_EXHAUSTED, "device ", device_, " has ", total_ - used_, " of ", total_, " bytes left, ", bytes,
         " are requested");
  }
  const size_t offset = room_for(span);
  Block& block = blocks_[offset];
  block.number = ++next_number;
  block.bytes = bytes;
  block.span = span;
  block.born = born;
  used_ += bytes;
  char* host = mapping_.host(device_, offset);
  AB_OPEN(host, span);
  poison(host, span);
  AB_CLOSE(host + bytes, span - bytes);
  return mapping_.address(device_, offset);
}

// An offset with `span` free bytes. The first red zone of a device precedes its first block.
size_t Memory::room_for(size_t span) {
  for (;;) {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second < span) continue;
      const size_t offset = gap->first, rest = gap->second - span;
      gaps_.erase(gap);
      if (rest) gaps_.emplace(offset + span, rest);
      return offset;
    }
    if (end_ == 0) {
      poison(mapping_.host(device_, 0), kRedZone);
      AB_CLOSE(mapping_.host(device_, 0), kRedZone);
      end_ = kRedZone;
    }
    if (mapping_.bytes() - end_ >= span) {
      end_ += span;
      return end_ - span;
    }
    if (resting_.empty())
      fail(AB_RESOURCE_EXHAUSTED, "device ", device_, " has no room of ", span, " contiguous bytes");
    recycle_oldest();
  }
}

void Memory::recycle_oldest() {
  size_t offset = resting_.front();
  size_t span = blocks_.at(offset).span;
  resting_.pop_front();
  blocks_.erase(offset);
  mapping_.give_back(device_, offset, span - kRedZone);  // the red zone of the next block stays
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + span) {
    span += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      span += before->second;
      gaps_.erase(before);
    }
  }
  gaps_.emplace(offset, span);
}

void Memory::release(void* p, const Clock* clock) {
  const size_t offset = mapping_.offset_of(p);
  const auto found = blocks_.find(offset);
  need(found != blocks_.end() && found->second.live, "release of an address that is ", place_of(offset));
  Block& block = found->second;
  const Access user = clock ? block.audit.unknown_to(*clock) : Access{};
  block.live = false;
  used_ -= block.bytes;
  char* host = mapping_.host(device_, offset);
  AB_OPEN(host, block.span);
  poison(host, block.span);
  AB_CLOSE(host, block.span);
  resting_.push_back(offset);
  if (resting_.size() > kRest) recycle_oldest();
  if (user.queue >= 0) {
    fail(AB_FAULT, "early reuse: block ", block.number, " of device ", device_,
         " is released, and no thread has waited for ", *user.label);
  }
}

Block& Memory::find(const void* p, size_t bytes, size_t* within) {
  const size_t offset = mapping_.offset_of(p);
  auto found = blocks_.upper_bound(offset);
  if (found != blocks_.begin()) {
    --found;
    *within = offset - found->first;
    Block& block = found->second;
    if (block.live && *within <= block.bytes && bytes <= block.bytes - *within) return block;
  }
  fail(AB_FAULT, "access of ", bytes, " bytes at ", place_of(offset));
}

bool Memory::intact(const void* p) const {
#if defined(__SANITIZE_ADDRESS__)
  static_cast<void>(p);
  return true;  // red zones are the sanitizer's
#else
  auto found = blocks_.upper_bound(mapping_.offset_of(p));
  if (found == blocks_.begin()) return true;
  --found;
  const Block& block = found->second;
  const char* host = mapping_.host(device_, found->first);
  return !block.live || (poisoned(host - kRedZone, kRedZone) && poisoned(host + block.bytes, block.span - block.bytes));
#endif
}

std::string Memory::left() const {
  size_t count = 0;
  for (const auto& [offset, block] : blocks_) count += block.live;
  return count ? said(count, " blocks (", used_, " bytes) of device ", device_) : "";
}

std::string Memory::place_of(size_t offset) const {
  auto found = blocks_.upper_bound(offset);
  if (found == blocks_.begin()) return said("no block of device ", device_);
  --found;
  const Block& block = found->second;
  const size_t within = offset - found->first;
  if (within >= block.span) return said("no block of device ", device_);
  return said("byte ", within, " of block ", block.number, " of device ", device_, ", which ",
              block.live ? "has " : "was released and had ", block.bytes, " bytes");
}

}  // namespace anabranch::simdevice
