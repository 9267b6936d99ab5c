#include "schedule.h"

#include <algorithm>

namespace anabranch::simdevice {

size_t Schedule::choose(const std::vector<Candidate>& candidates, int queues) {
  const auto earlier = [](const Candidate& a, const Candidate& b) { return a.number < b.number; };
  const auto index = [&](auto found) { return static_cast<size_t>(found - candidates.begin()); };
  switch (order_) {
    case Order::kEarliest: return index(std::min_element(candidates.begin(), candidates.end(), earlier));
    case Order::kLatest: return index(std::max_element(candidates.begin(), candidates.end(), earlier));
    case Order::kRandom: return below(candidates.size());
    case Order::kStarved: break;
  }
  const int starved = static_cast<int>(seed_ % static_cast<uint64_t>(queues));
  size_t choice = below(candidates.size());
  if (candidates[choice].queue == starved && candidates.size() > 1) choice = (choice + 1) % candidates.size();
  return choice;
}

int Schedule::surplus() { return order_ == Order::kRandom ? static_cast<int>(below(4)) : 0; }

}  // namespace anabranch::simdevice
