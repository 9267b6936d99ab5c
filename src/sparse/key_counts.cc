#include "sparse/key_counts.h"

#include <algorithm>
#include <cstring>

#include "sparse/hash.h"

namespace anabranch::sparse {
namespace {

// Sightings per counter after which all counts are halved: at most about a sixth of the new keys then share both of
// their counters with others.
constexpr uint64_t kHalve = 4;

}  // namespace

bool KeyCounts::see(uint64_t hash, int32_t enough) {
  uint8_t& a = counters_[in_range(hash, counters_.size())];
  uint8_t& b = counters_[in_range(scramble(hash), counters_.size())];
  const uint8_t times = std::min(a, b);
  if (times + 1 >= enough) return true;
  a = std::max<uint8_t>(a, times + 1);
  b = std::max<uint8_t>(b, times + 1);
  if (++counted_ * kHalve < counters_.size() * static_cast<uint64_t>(enough - 1)) return false;
  for (uint8_t& c : counters_) c /= 2;
  counted_ = 0;
  return false;
}

void KeyCounts::save(int64_t* to) const {
  to[0] = static_cast<int64_t>(counted_);
  std::fill(to + 1, to + words(), 0);
  if (!counters_.empty()) std::memcpy(to + 1, counters_.data(), counters_.size());
}

void KeyCounts::load(const int64_t* from) {
  counted_ = static_cast<uint64_t>(from[0]);
  if (!counters_.empty()) std::memcpy(counters_.data(), from + 1, counters_.size());
}

}  // namespace anabranch::sparse
