// Matches rows with columns of a matrix greedily, largest entry first.

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/detection/boxes.h"

namespace anabranch::detection::bipartite_match_op {
namespace {

constexpr double kNothing = 1e-6;  // smaller entries never match

// The largest entry of each row among the free columns, so that each choice reads one number per row.
template <class T> class Matcher {
 public:
  void match(const T* dist, int64_t rows, int64_t columns, int32_t* row_of, T* dist_of) {
    std::fill(row_of, row_of + columns, -1);
    std::fill(dist_of, dist_of + columns, T(0));
    best_.assign(static_cast<size_t>(rows), 0);
    for (int64_t i = 0; i < rows; ++i) seek(dist + i * columns, columns, row_of, i);
    for (int64_t row = nearest(dist, columns); row >= 0; row = nearest(dist, columns)) {
      const int64_t column = best_[static_cast<size_t>(row)];
      row_of[column] = static_cast<int32_t>(row);
      dist_of[column] = dist[row * columns + column];
      best_[static_cast<size_t>(row)] = kDone;
      for (int64_t i = 0; i < rows; ++i) {
        if (best_[static_cast<size_t>(i)] == column) seek(dist + i * columns, columns, row_of, i);
      }
    }
  }

 private:
  static constexpr int64_t kDone = -1;

  // Of equal entries, the one in the first column; kDone if no column is free.
  void seek(const T* line, int64_t columns, const int32_t* row_of, int64_t row) {
    int64_t found = kDone;
    for (int64_t j = 0; j < columns; ++j) {
      if (row_of[j] >= 0 || !(line[j] >= static_cast<T>(kNothing))) continue;
      if (found < 0 || line[j] > line[found]) found = j;
    }
    best_[static_cast<size_t>(row)] = found;
  }

  // The row with the largest entry; of equal entries the first column wins, then the first row.
  int64_t nearest(const T* dist, int64_t columns) const {
    int64_t chosen = -1;
    for (int64_t i = 0; i < static_cast<int64_t>(best_.size()); ++i) {
      const int64_t j = best_[static_cast<size_t>(i)];
      if (j < 0) continue;
      if (chosen >= 0) {
        const int64_t k = best_[static_cast<size_t>(chosen)];
        const T here = dist[i * columns + j], there = dist[chosen * columns + k];
        if (!(here > there || (here == there && j < k))) continue;
      }
      chosen = i;
    }
    return chosen;
  }

  std::vector<int64_t> best_;
};

// Unmatched columns get the row of their largest entry if it is at least `threshold`.
template <class T>
void match_rest(const T* dist, int64_t rows, int64_t columns, T threshold, int32_t* row_of, T* dist_of) {
  for (int64_t j = 0; j < columns; ++j) {
    if (row_of[j] >= 0) continue;
    for (int64_t i = 0; i < rows; ++i) {
      const T d = dist[i * columns + j];
      if (!(d >= static_cast<T>(kNothing) && d >= threshold)) continue;
      if (row_of[j] >= 0 && !(d > dist_of[j])) continue;
      row_of[j] = static_cast<int32_t>(i);
      dist_of[j] = d;
    }
  }
}

void infer(InferContext& c) {
  check_rank(c, "DistMat", 2, 2);
  const Meta& dist = c.in("DistMat");
  int64_t samples = 1;
  if (!c.runtime()) {
    samples = dist.lod_level > 0 || dist.shape[0] == kUnknown ? kUnknown : 1;
  } else if (dist.lod && !dist.lod->empty()) {
    samples = static_cast<int64_t>(one_level_of(c, "DistMat", true).size()) - 1;
  }
  c.set_out("ColToRowMatchIndices", Shape{samples, dist.shape[1]}, DType::kInt32);
  c.set_out("ColToRowMatchDist", Shape{samples, dist.shape[1]}, dist.dtype);
}

AB_OP(bipartite_match)
    .doc(
        "Greedy matching: the largest entry of DistMat pairs its row and column, then the largest entry of the "
        "remaining rows and columns, and so on down to 1e-6; ties go to the first column, then to the first row. Each "
        "sequence of rows is matched separately. per_prediction: an unmatched column also gets the row of its largest "
        "entry if that is at least dist_threshold.")
    .in("DistMat", "[rows, columns] float: similarities; one sequence per sample, or one sample without LoD")
    .out("ColToRowMatchIndices", "[samples, columns] int32: the matched row within the sequence, or -1")
    .out("ColToRowMatchDist", "[samples, columns]: the matched entries, or 0")
    .attr<std::string>("match_type", "bipartite", "bipartite or per_prediction",
                       one_of("match_type", {"bipartite", "per_prediction"}))
    .attr<float>("dist_threshold", 0.5f, "per_prediction: smallest entry that matches")
    .infer(infer)
    .no_grad(kBoxesAreFixed)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rest = op.attr<std::string>("match_type") == "per_prediction",
              threshold = static_cast<T>(op.attr<float>("dist_threshold")), dist = op.in("DistMat"),
              indices = op.out("ColToRowMatchIndices"), dists = op.out("ColToRowMatchDist"),
              matchers = std::vector<Matcher<T>>()](KernelContext& c) mutable {
        const Tensor& d = c[dist];
        const int64_t samples = c[indices].rows(), columns = d.shape()[1];
        if (static_cast<int64_t>(matchers.size()) < samples) matchers.resize(static_cast<size_t>(samples));
        int32_t* rows = c[indices].mutable_data<int32_t>();
        T* near = c[dists].mutable_data<T>();
        c.parallel_each(samples, 1, [&, rows, near, columns](int64_t n) {
          const int64_t first = d.lod().empty() ? 0 : d.lod().back()[static_cast<size_t>(n)];
          const int64_t last = d.lod().empty() ? d.rows() : d.lod().back()[static_cast<size_t>(n) + 1];
          const T* from = d.data<T>() + first * columns;
          matchers[static_cast<size_t>(n)].match(from, last - first, columns, rows + n * columns, near + n * columns);
          if (rest) match_rest(from, last - first, columns, threshold, rows + n * columns, near + n * columns);
        });
      };
    });

}  // namespace
}  // namespace anabranch::detection::bipartite_match_op
