// A parameter of GEO training, split over servers.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/value.h"
#include "ps/client.h"

namespace anabranch::ps {

struct GeoVariable {
  struct Shard {
    Remote difference, value;
    int64_t rows = 0;  // below 0: of a growable table, which is split by the hash of keys
  };
  std::string name;
  std::shared_ptr<Value> value;
  bool sparse = false;  // a table: looked-up rows are sent
  std::vector<Shard> shards;
  bool moves_all = false;  // of a table: rows that its rule has moved without a lookup are sent, too (momentum)

  bool grows() const {
    return std::all_of(shards.begin(), shards.end(), [](const Shard& s) { return s.rows < 0; });
  }
};

}  // namespace anabranch::ps
