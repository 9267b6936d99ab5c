// Options of a growable table, and its statistics.
#pragma once
#include <cstdint>

#include "sparse/update_rules.h"

namespace anabranch::sparse {

using rules::RowRule;

// Distribution of the numbers of a new row.
enum class Start : int32_t { kUniform = 0, kNormal = 1, kTruncatedNormal = 2 };

// The row that leaves at the byte limit, among a few candidates.
enum class Policy : int32_t {
  kOldest = 0,       // LRU: not seen for longest
  kRarest = 1,       // LFU: seen least often since it was created
  kLowestScore = 2,  // of shows and clicks
};

// Of a table whose first two numbers of a row count shows and clicks (Policy::kLowestScore). Their gradients are added
// to them.
struct ScoreRule {
  float show = 0.1f, click = 1;  // score = show * (shows - clicks) + click * clicks
  float decay = 0.98f;           // factor of both counts at a shrink
  float delete_below = 0;        // a shrink removes rows with a lower score
  int64_t shrink_every = 0;      // updates of the table; 0: it never shrinks
  bool known = true;             // false: of a table that was loaded without its startup program
};

struct TableOptions {
  int64_t width = 0;             // float32 numbers of a row
  RowRule rule = RowRule::kSgd;  // of the optimizer, whose moments are stored after the row
  float moment_start = 0;        // their initial value
  uint64_t seed = 0;             // together with the key it determines the initial row:
  Start start = Start::kUniform;
  float low = 0, high = 0;  // uniform in [low, high); or normal with this mean and this deviation
  int64_t max_bytes = 0;    // of memory at all servers together, 0: no limit
  bool evict = true;        // at the limit a row is evicted; else new keys are refused
  Policy policy = Policy::kOldest;
  int32_t admit_count = 1;      // a key gets a row when it is seen for this time
  float admit_probability = 1;  // or, each time, with this probability
  int64_t expire_after = 0;     // updates of the table after which an unseen row is removed; 0: never
  bool timed = false;           // expire_after, and ages of rows, are seconds in the time of events
  ScoreRule score;              // for Policy::kLowestScore
  // Rows are created by updates, and lookups only read: in training a key without a row reads as its initial row.
  bool by_updates = false;
  int32_t servers = 1;  // that hold the table together: this is the part of one of them
  bool few = false;     // memory comes in small blocks, for rows that hide those of another table
  bool tells = false;   // keeps the keys whose rows the rules remove or shrink, until take_told()

  int64_t counts() const { return policy == Policy::kRarest ? 1 : 0; }      // numbers after the moments
  int64_t added() const { return policy == Policy::kLowestScore ? 2 : 0; }  // first numbers of a row that are counts
  // Moments of a row.
  int64_t state() const { return width * rules::info_of(rule).moments + (rules::info_of(rule).single ? 1 : 0); }
  int64_t floats() const { return width + state() + counts(); }  // of a record
};

struct Pull {
  bool train = false;                // keys are counted as seen, and may get a row
  const int64_t* padding = nullptr;  // this key never has a row
  bool keep_missing = false;         // leaves the output of keys without a row as it is, instead of zeros
};

struct TableStats {
  int64_t rows = 0, bytes = 0;
  int64_t hits = 0, misses = 0;                  // lookups that found a row, that found none
  int64_t created = 0;                           // rows, since the table was created or loaded
  int64_t waiting = 0;                           // sightings of keys not admitted yet
  int64_t refused = 0;                           // sightings refused for lack of memory
  int64_t evicted = 0, expired = 0, shrunk = 0;  // rows removed: at the limit, by age, by score
};

}  // namespace anabranch::sparse
