// The extents of a tensor, at most kMaxRank of them, stored in place. While a program is built an extent may be
// kUnknown (-1); at run time none is. Rank 0 does not occur in Fluid: scalars have shape [1].
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace anabranch {

inline constexpr int kMaxRank = 9;
inline constexpr int64_t kUnknown = -1;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // InvalidArgument: rank above kMaxRank, extent below -1
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  void set(int axis, int64_t extent) { dims_[axis] = extent; }
  void push_back(int64_t extent);
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

  bool known() const;                        // no extent is -1
  int64_t numel() const;                     // product; ResourceExhausted on overflow; -1 if unknown
  int64_t numel(int first, int last) const;  // product of axes [first, last)
  Shape slice(int first, int last) const;    // axes [first, last)
  std::string str() const;                   // "[32, 784]"
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// Equal, treating -1 on either side as "any".
bool compatible(const Shape& a, const Shape& b);

// Maps an axis in [-rank, rank) to [0, rank); otherwise InvalidArgument, which names `what`.
int normal_axis(int64_t axis, int rank, const char* what);

}  // namespace anabranch
