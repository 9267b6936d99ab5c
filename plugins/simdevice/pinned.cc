#include "pinned.h"

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "memory.h"

namespace anabranch::simdevice {

void* Pinned::allocate(size_t bytes) {
  Block block;
  block.memory.reset(static_cast<char*>(operator new[](bytes, kAlignment)));
  block.bytes = bytes;
  char* p = block.memory.get();
  poison(p, bytes);
  blocks_.emplace(p, std::move(block));
  return p;
}

void Pinned::release(void* p, const Clock* clock) {
  const auto found = blocks_.find(static_cast<const char*>(p));
  need(found != blocks_.end(), "release of host memory that is not pinned");
  const Access user = clock ? found->second.audit.unknown_to(*clock) : Access{};
  const std::string* label = user.label;
  if (!found->second.waiting.empty()) label = found->second.waiting.front().label;
  if (label) {
    fail(AB_FAULT, "early reuse: ", found->second.bytes, " pinned bytes are released, and no thread has waited for ",
         *label);
  }
  blocks_.erase(found);
}

Pinned::Block& Pinned::find(const void* p, size_t bytes) {
  auto found = blocks_.upper_bound(static_cast<const char*>(p));
  if (found != blocks_.begin()) {
    --found;
    const auto within = static_cast<size_t>(static_cast<const char*>(p) - found->first);
    if (within <= found->second.bytes && bytes <= found->second.bytes - within) return found->second;
  }
  fail(AB_INVALID_ARGUMENT, "a copy of ", bytes, " bytes names host memory that is not pinned");
}

void Pinned::check(const void* p, size_t bytes) const { const_cast<Pinned*>(this)->find(p, bytes); }

bool Pinned::add(const Range& range) {
  Block& block = find(range.begin, range.bytes);
  bool alone = true;
  for (const Range& other : block.waiting) {
    if (!apart(other, range) && (other.writes || range.writes)) alone = false;
  }
  block.waiting.push_back(range);
  return alone;
}

bool Pinned::remove(const Range& range) {
  std::vector<Range>& waiting = find(range.begin, range.bytes).waiting;
  const auto same = [&](const Range& other) {
    return other.begin == range.begin && other.bytes == range.bytes && other.writes == range.writes;
  };
  waiting.erase(std::find_if(waiting.begin(), waiting.end(), same));
  bool written = false, read = false;
  for (const Range& other : waiting) {
    if (!apart(other, range)) (other.writes ? written : read) = true;
  }
  return range.writes && written && !read;
}

Access Pinned::touch(const void* p, size_t bytes, ab_access how, const Access& now, const Clock& clock) {
  Block& block = find(p, bytes);
  const auto begin = static_cast<size_t>(static_cast<const char*>(p) - block.memory.get());
  return block.audit.touch(begin, begin + bytes, how, now, clock);
}

std::string Pinned::left() const {
  size_t bytes = 0;
  for (const auto& [p, block] : blocks_) bytes += block.bytes;
  return blocks_.empty() ? "" : said(blocks_.size(), " pinned blocks (", bytes, " bytes)");
}

// FNV-1a over 8-byte groups: every step is a bijection of the sum, so one changed group changes it.
uint64_t sum_of(const void* p, size_t bytes) {
  const char* at = static_cast<const char*>(p);
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, at + i, bytes - i < sizeof word ? bytes - i : sizeof word);
    sum = (sum ^ word) * 1099511628211u;
  }
  return sum;
}

}  // namespace anabranch::simdevice
