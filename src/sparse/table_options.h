// Options of a growable table, and its statistics.
#pragma once
#include <cstdint>

namespace anabranch::sparse {

struct TableOptions {
  int64_t width = 0;            // float32 numbers of a row
  int32_t moments = 0;          // of the optimizer: number of `width`-sized vectors stored after the row
  float moment_start = 0;       // their initial value
  uint64_t seed = 0;            // together with the key it determines the initial row:
  float low = 0, high = 0;      // uniform in [low, high)
  int64_t max_bytes = 0;        // of memory, 0: no limit
  bool evict = true;            // at the limit the row unseen for longest is evicted; else new keys are refused
  int32_t admit_count = 1;      // a key gets a row when it is seen for this time
  float admit_probability = 1;  // or, each time, with this probability
  int64_t expire_after = 0;     // updates of the table after which an unseen row is removed; 0: never
};

struct Pull {
  bool train = false;                // keys are counted as seen, and may get a row
  const int64_t* padding = nullptr;  // this key never has a row
};

struct TableStats {
  int64_t rows = 0, bytes = 0;
  int64_t hits = 0, misses = 0;  // lookups that found a row, that found none
  int64_t created = 0;           // rows, since the table was created or loaded
  int64_t waiting = 0;           // training lookups of keys not admitted yet
  int64_t refused = 0;           // training lookups refused for lack of memory
  int64_t evicted = 0, expired = 0;
};

}  // namespace anabranch::sparse
