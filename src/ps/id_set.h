// A set of row ids that repeat often: duplicates are removed on access, and when the size has doubled.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace anabranch::ps {

class IdSet {
 public:
  void add(std::span<const int64_t> ids) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (ids_.size() > kSmall && ids_.size() > 2 * distinct_) sort_out();
  }
  // Ascending.
  const std::vector<int64_t>& ids() {
    sort_out();
    return ids_;
  }
  void clear() {
    ids_.clear();
    distinct_ = 0;
  }
  void swap(IdSet& other) {
    ids_.swap(other.ids_);
    std::swap(distinct_, other.distinct_);
  }

 private:
  static constexpr size_t kSmall = 1 << 16;

  void sort_out() {
    if (ids_.size() == distinct_) return;
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
    distinct_ = ids_.size();
  }

  std::vector<int64_t> ids_;
  size_t distinct_ = 0;  // number of leading distinct ids, if nothing was added since
};

}  // namespace anabranch::ps
