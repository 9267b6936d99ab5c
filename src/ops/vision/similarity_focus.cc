// A mask of the most important elements in some slices of an image: those largest in their row and column.
#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/sort_keys.h"

namespace anabranch::vision::similarity_focus_op {
namespace {

// Elements of a slice: the two remaining axes of X, as (first row, step) each.
struct Slice {
  int64_t rows, columns, row_step, column_step, axis_step, depth;
  Slice(const Shape& s, int axis) {
    const std::array<int64_t, 4> steps = {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
    const int a = axis == 1 ? 2 : 1, b = axis == 3 ? 2 : 3;
    rows = s[a], columns = s[b], depth = s[axis];
    row_step = steps[a], column_step = steps[b], axis_step = steps[axis];
  }
  int64_t at(int64_t element) const { return element / columns * row_step + element % columns * column_step; }
};

void infer(InferContext& c) {
  check_rank(c, "X", 4, 4);
  const auto& indexes = c.attr<std::vector<int32_t>>("indexes");
  const int axis = c.attr<int32_t>("axis");
  const int64_t depth = c.in("X").shape[axis];
  AB_CHECK(!indexes.empty(), InvalidArgument, "indexes must name at least one slice");
  for (const int32_t i : indexes) {
    AB_CHECK(i >= 0 && (depth == kUnknown || i < depth), InvalidArgument, "indexes must be from 0 to {}, got {}",
             depth - 1, i);
  }
  c.same_as("Out", "X");
}

// Marks elements, largest first, that share neither row nor column with a marked one.
template <class T> class Marks {
 public:
  void add(const Slice& s, const T* x, T* to) {
    constexpr int64_t kFew = 8;  // marks for which scanning all remaining numbers is cheaper than sorting them
    std::min(s.rows, s.columns) <= kFew ? choose(s, x, to) : walk(s, x, to);
  }

 private:
  static bool above(T v, T best) { return v > best || (best != best && v == v); }
  static void mark(const Slice& s, int64_t row, int64_t column, T* to) {
    T* first = to + row * s.row_step + column * s.column_step;
    for (int64_t d = 0; d < s.depth; ++d) first[d * s.axis_step] = T{1};
  }

  // Repeatedly the largest number of the remaining rows and columns; of equal numbers the first one.
  void choose(const Slice& s, const T* x, T* to) {
    const auto fill = [](std::vector<int64_t>* left, int64_t n) {
      left->resize(static_cast<size_t>(n));
      std::iota(left->begin(), left->end(), int64_t{0});
    };
    fill(&rows_, s.rows);
    fill(&columns_, s.columns);
    while (!rows_.empty() && !columns_.empty()) {
      size_t row = 0, column = 0;
      T best = x[rows_[0] * s.row_step + columns_[0] * s.column_step];
      for (size_t r = 0; r < rows_.size(); ++r) {
        const T* line = x + rows_[r] * s.row_step;
        for (size_t k = 0; k < columns_.size(); ++k) {
          const T v = line[columns_[k] * s.column_step];
          if (above(v, best)) best = v, row = r, column = k;
        }
      }
      mark(s, rows_[row], columns_[column], to);
      rows_.erase(rows_.begin() + static_cast<int64_t>(row));
      columns_.erase(columns_.begin() + static_cast<int64_t>(column));
    }
  }

  void walk(const Slice& s, const T* x, T* to) {
    sort(s, x);
    taken_.assign(static_cast<size_t>(s.rows + s.columns), 0);
    for (const int64_t element : order_) {
      char &row = taken_[element / s.columns], &column = taken_[s.rows + element % s.columns];
      if (row || column) continue;
      row = column = 1;
      mark(s, element / s.columns, element % s.columns, to);
    }
  }

  // The indices in order_, largest number first.
  void sort(const Slice& s, const T* x) {
    const int64_t n = s.rows * s.columns;
    values_.resize(static_cast<size_t>(n));
    order_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values_[static_cast<size_t>(i)] = x[s.at(i)];
    if constexpr (std::is_same_v<T, float>) {
      const auto& sorted = sorted_places(values_.data(), 1, n, true);
      for (size_t i = 0; i < sorted.size(); ++i) order_[i] = static_cast<uint32_t>(sorted[i]);
    } else {
      std::iota(order_.begin(), order_.end(), int64_t{0});
      std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return values_[a] > values_[b]; });
    }
  }

  std::vector<T> values_;
  std::vector<int64_t> order_, rows_, columns_;  // the last two: the remaining ones
  std::vector<char> taken_;
};

AB_OP(similarity_focus)
    .doc(
        "For each of the slices `indexes` of axis `axis`, selects numbers, largest first, no two of which share a row "
        "or column. Out is 1 at their positions in every slice, 0 elsewhere.")
    .source("He & Lin, NAACL 2016: Pairwise word interaction modeling")
    .in("X", "[N, A, B, C] float")
    .out("Out", "[N, A, B, C] like X")
    .attr<int32_t>("axis", 1, "1, 2 or 3", within("axis", 1, 3))
    .attr<std::vector<int32_t>>("indexes", {}, "indices of the slices to use")
    .infer(infer)
    .no_grad("a mask is constant almost everywhere")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axis = op.attr<int32_t>("axis"), indexes = op.attr<std::vector<int32_t>>("indexes"), marks = Marks<T>(),
              x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
        const Slice slice(c[x].shape(), axis);
        const int64_t image = c[x].row_elems();
        const T* from = c[x].data<T>();
        T* to = zeroed<T>(c, out);
        for (int64_t n = 0; n < c[x].rows(); ++n) {
          for (const int32_t i : indexes) marks.add(slice, from + n * image + i * slice.axis_step, to + n * image);
        }
      };
    });

}  // namespace
}  // namespace anabranch::vision::similarity_focus_op
