// Numbers ids by their first appearance. Keeps its memory from batch to batch.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sparse/hash.h"

namespace anabranch::distributed {

class DistinctIds {
 public:
  // Prepares for at most n ids.
  void begin(size_t n) {
    const size_t room = std::bit_ceil(std::max<size_t>(2 * n, 16));
    if (slots_.size() < room) {
      slots_.assign(room, {});
      round_ = 0;
    }
    shift_ = 64 - std::countr_zero(slots_.size());
    if (++round_ == 0) {  // the counter wrapped: slots of old rounds must not look new
      std::fill(slots_.begin(), slots_.end(), Slot{});
      round_ = 1;
    }
    count_ = 0;
  }
  // The number of an id, from 0 on; `fresh`: whether the id is new.
  uint32_t number(int64_t id, bool* fresh) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = sparse::hash_id(id) >> shift_;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.round == round_ && slot.id != id) continue;
      *fresh = slot.round != round_;
      if (*fresh) slot = {id, count_++, round_};
      return slot.number;
    }
  }

 private:
  struct Slot {
    int64_t id = 0;
    uint32_t number = 0, round = 0;
  };
  std::vector<Slot> slots_;
  int shift_ = 0;
  uint32_t count_ = 0, round_ = 0;
};

}  // namespace anabranch::distributed
