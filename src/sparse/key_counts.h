// Approximate counts of keys without a row, in memory of fixed size: two counters per key, possibly shared with others,
// of which the smaller one is an upper estimate. All counts are halved from time to time, so that endless keys do not
// fill the counters. The result depends on the keys and their order only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace anabranch::sparse {

class KeyCounts {
 public:
  KeyCounts() = default;
  explicit KeyCounts(size_t counters) : counters_(counters) {}

  // Counts a key; true if it has now been seen `enough` times, which is not counted.
  bool see(uint64_t hash, int32_t enough);
  int64_t bytes() const { return static_cast<int64_t>(counters_.size()); }

  // The state, as whole numbers of 8 bytes; its size depends on the number of counters only.
  size_t words() const { return 1 + (counters_.size() + 7) / 8; }
  void save(int64_t* to) const;
  void load(const int64_t* from);

 private:
  std::vector<uint8_t> counters_;
  uint64_t counted_ = 0;  // since all counts were halved
};

}  // namespace anabranch::sparse
