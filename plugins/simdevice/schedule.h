// Chooses what runs next. The same seed and the same calls give the same order.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "settings.h"

namespace anabranch::simdevice {

struct Candidate {
  int queue;        // its id
  uint64_t number;  // of its first item
};

class Schedule {
 public:
  Schedule(uint64_t seed, Order order) : seed_(seed), order_(order), numbers_(seed) {}

  size_t choose(const std::vector<Candidate>& candidates, int queues);  // an index; queues: how many there were so far
  int surplus();  // how many items more than are waited for run now

 private:
  size_t below(size_t n) { return static_cast<size_t>(numbers_() % n); }

  const uint64_t seed_;
  const Order order_;
  std::mt19937_64 numbers_;
};

}  // namespace anabranch::simdevice
