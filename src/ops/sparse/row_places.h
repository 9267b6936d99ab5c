// Where the rows of a table that holds only some of them are.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace anabranch::sparse {

enum class Repeated { kFirst, kLast };  // which of several entries of a row counts

// The positions of the rows of a table, recomputed when they have changed.
class RowPlaces {
 public:
  explicit RowPlaces(Repeated repeated) : repeated_(repeated) {}
  void see(const std::vector<int64_t>& rows) {
    if (rows == rows_) return;
    rows_ = rows;
    place_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto [at, is_new] = place_.try_emplace(rows[i], static_cast<int64_t>(i));
      if (!is_new && repeated_ == Repeated::kLast) at->second = static_cast<int64_t>(i);
    }
  }
  int64_t of(int64_t row) const {  // -1: the table does not hold it
    const auto at = place_.find(row);
    return at == place_.end() ? -1 : at->second;
  }

 private:
  Repeated repeated_;
  std::vector<int64_t> rows_;
  std::unordered_map<int64_t, int64_t> place_;
};

}  // namespace anabranch::sparse
