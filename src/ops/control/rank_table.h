// Sequences by length, the longest first: the order in which the steps of a batch of sequences are computed together,
// so that those still going on are always the first rows.
#pragma once
#include <memory>
#include <vector>

#include "core/value.h"
#include "opdef/kernel_context.h"
#include "ops/control/pieces.h"

namespace anabranch::control {

struct RankTable {
  struct Item {
    int64_t index, length;  // of the sequence in its level
  };
  std::vector<Item> items;  // equal lengths keep their order
  LoD above;                // the levels over the ranked one

  int64_t steps() const { return items.empty() ? 0 : items[0].length; }
  // How many sequences have more than `step` parts.
  int64_t going_on(int64_t step) const;
};

const RankTable& rank_table(const KernelContext& c, In in);

// Parts of sequences: part `step` of each sequence of the table that has one, by step and by rank. The parts are
// sequences of the level below the ranked one, or rows where there is none.
class Steps {
 public:
  Steps(const RankTable& table, const LoD& lod, int64_t rows);
  Rows part(int64_t step, int64_t rank) const;
  LoD part_lod(int64_t step, int64_t rank) const;
  const Pieces& parts() const { return parts_; }

 private:
  const RankTable& table_;
  std::vector<int64_t> starts_;  // offsets of the ranked level
  Pieces parts_;
};

}  // namespace anabranch::control
