#include "base/near.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace anabranch {
namespace {

constexpr size_t kLongest = 200;  // longer names are not compared: the cost is quadratic

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Letters to insert, remove or replace, and pairs of letters to swap. Case does not count.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> above(b.size() + 1), row(above), earlier;
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    earlier = std::exchange(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (same(a[i], b[j]) ? 0 : 1), row[j] + 1, above[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && same(a[i], b[j - 1]) && same(a[i - 1], b[j]);
      if (swapped) row[j + 1] = std::min(row[j + 1], earlier[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string near_name(std::string_view name, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1;
  for (const std::string& other : names) {
    if (name.size() > kLongest || other.size() > kLongest) continue;
    const size_t here = distance(name, other);
    if (here >= least || here >= other.size()) continue;
    least = here;
    best = &other;
  }
  return best ? "; did you mean " + *best + "?" : "";
}

}  // namespace anabranch
