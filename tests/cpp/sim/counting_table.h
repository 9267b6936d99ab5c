// A growable table in the stores of simulated servers: each push adds 1 to the rows that all pushes share, and makes
// its own rows. All of them lie in one shard, whose index grows while snapshots are written in slices of a few rows.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ps/store.h"
#include "sim/planted.h"
#include "sparse/growable_table.h"

namespace anabranch::ps::sim {

class CountingTable {
 public:
  static constexpr int kShared = 12, kMine = 3;

  CountingTable();
  // Of the n-th step of a worker; a step is pushed once.
  static std::vector<int64_t> keys_of(int worker, int step);
  void add(const Change& change);
  void load(const Tensor& rows);
  std::unique_ptr<Saving> begin_save(Planted planted) const;
  // Empty, or what is wrong with it after `pushes`.
  std::string check(int64_t pushes) const;

 private:
  std::shared_ptr<sparse::GrowableTable> table_;
};

}  // namespace anabranch::ps::sim
