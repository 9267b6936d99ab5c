// Sequences by descending length: a batch is computed step by step in this order, so unfinished sequences are always
// the first rows.
#pragma once
#include <memory>
#include <vector>

#include "core/value.h"
#include "opdef/kernel_context.h"
#include "ops/control/slices.h"

namespace anabranch::control {

struct RankTable {
  struct Item {
    int64_t index, length;  // of the sequence at its level
  };
  std::vector<Item> items;  // equal lengths keep their order
  LoD above;                // levels above the ranked one

  int64_t steps() const { return items.empty() ? 0 : items[0].length; }
  // Number of sequences with more than `step` parts.
  int64_t going_on(int64_t step) const;
};

const RankTable& rank_table(const KernelContext& c, In in);

// Parts of sequences by step and rank: part `step` of each sequence of the table that has one. Parts are sequences of
// the level below the ranked one, or rows if there is none.
class Steps {
 public:
  Steps(const RankTable& table, const LoD& lod, int64_t rows);
  Rows part(int64_t step, int64_t rank) const;
  LoD part_lod(int64_t step, int64_t rank) const;
  const Slices& parts() const { return parts_; }

 private:
  const RankTable& table_;
  std::vector<int64_t> starts_;  // offsets of the ranked level
  Slices parts_;
};

}  // namespace anabranch::control
