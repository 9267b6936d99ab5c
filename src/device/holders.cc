#include "device/holders.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"

namespace anabranch::device {

void Holders::tell(Error* error) const {
  constexpr size_t kTold = 8;
  struct Sum {
    int64_t bytes = 0;
    int blocks = 0;
    std::string purpose;
  };
  std::map<std::string, Sum> sums;
  for (const auto& [block, held] : held_) {
    Sum& sum = sums[held.purpose];
    sum.bytes += held.bytes;
    ++sum.blocks;
    sum.purpose = held.purpose;
  }
  std::vector<Sum> all;
  for (auto& [purpose, sum] : sums) all.push_back(std::move(sum));
  std::stable_sort(all.begin(), all.end(), [](const Sum& a, const Sum& b) { return a.bytes > b.bytes; });
  const auto tell_one = [&](const Sum& sum) {
    const std::string blocks = sum.blocks > 1 ? fmt::format(" ({} blocks)", sum.blocks) : "";
    error->with_note(fmt::format("holds  {:>12} bytes: {}{}", sum.bytes, sum.purpose, blocks));
  };
  for (size_t i = 0; i < std::min(all.size(), kTold); ++i) tell_one(all[i]);
  Sum others{.purpose = "others"};
  for (size_t i = kTold; i < all.size(); ++i) {
    others.bytes += all[i].bytes;
    others.blocks += all[i].blocks;
  }
  if (others.blocks) tell_one(others);
}

}  // namespace anabranch::device
