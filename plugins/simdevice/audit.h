// Finds accesses that no event orders, in any order in which they ran. Each byte of a block records its last write and
// the reads since then; the vector clock of the next access must include them. The check is DJIT+ (Pozniansky and
// Schuster, doi:10.1145/781498.781529).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clock.h"
#include "device/plugin_api.h"

namespace anabranch::simdevice {

struct Access {
  int queue = -1;  // none
  uint64_t tick = 0;
  const std::string* label = nullptr;  // "#3 relu (map/relu/f32), queue compute of device 0"
};

class Audit {
 public:
  // The access `now` of bytes [begin, end), with the clock `clock`. Returns the access with which it is not ordered, or
  // one without a queue.
  Access touch(size_t begin, size_t end, ab_access how, const Access& now, const Clock& clock);
  // An access that `clock` does not include, or one without a queue.
  Access unknown_to(const Clock& clock) const;

 private:
  struct Cell {
    size_t end = 0;
    Access write;
    std::vector<Access> reads, sums;
  };

  void split(size_t at);
  void cover(size_t begin, size_t end);

  std::map<size_t, Cell> cells_;  // by start; gaps were never accessed
};

}  // namespace anabranch::simdevice
