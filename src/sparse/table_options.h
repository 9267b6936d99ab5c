// What a growable table is told when it is made, and what it tells about itself.
#pragma once
#include <cstdint>

namespace anabranch::sparse {

struct TableOptions {
  int64_t width = 0;        // float32 numbers of a row
  int32_t moments = 0;      // of the optimizer: as many times `width` numbers beside the row
  float moment_start = 0;   // their first value
  uint64_t seed = 0;        // with the key it decides the first value of a row:
  float low = 0, high = 0;  // uniform in [low, high)
  int64_t max_bytes = 0;    // of memory, 0: no limit
  bool evict = true;        // at the limit the row that was not seen for longest makes room; else new keys are refused
  int32_t admit_count = 1;  // a key gets a row when it is seen for this time
  float admit_probability = 1;  // or, at each time, with this probability
  int64_t expire_after = 0;     // updates of the table after which a row that was not seen goes; 0: never
};

struct Pull {
  bool train = false;                // keys are noted as seen, and may get a row
  const int64_t* padding = nullptr;  // this key has no row and gets none
};

struct TableStats {
  int64_t rows = 0, bytes = 0;
  int64_t hits = 0, misses = 0;  // look-ups that found a row, that found none
  int64_t created = 0;           // rows, since the table was made or loaded
  int64_t waiting = 0;           // look-ups in training of keys that were not admitted yet
  int64_t refused = 0;           // look-ups in training for which there was no room
  int64_t evicted = 0, expired = 0;
};

}  // namespace anabranch::sparse
