// Attention between the items of one page, with a matrix for each pair of positions on it.
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"

namespace anabranch::sparse::rank_attention_op {
namespace {

constexpr int64_t kGrain = 64;

void infer(InferContext& c) {
  for (const char* slot : {"X", "RankOffset", "RankParam"}) check_rank(c, slot, 2, 2);
  check_same_dtype(c, "X", "RankParam");
  check_dtype(c, "RankOffset", DType::kInt32);
  const int64_t places = c.attr<int32_t>("MaxRank");
  const Shape &x = c.in("X").shape, &param = c.in("RankParam").shape;
  check_shape(c, "RankOffset", Shape{x[0], 1 + 2 * places});
  AB_CHECK(x[1] == kUnknown || param[0] == kUnknown || param[0] == places * places * x[1], ShapeMismatch,
           "RankParam must have MaxRank^2 ({}) rows for each of the {} columns of X, got {}", places * places, x[1],
           param.str());
  c.set_out("Out", Shape{x[0], param[1]}, c.in("X").dtype);
  c.share_lod("Out", "X");
}

// Calls fn(row of Out, row of X, first row of the matrix in RankParam) for the pairs of an item of rows [begin, end).
struct Pairs {
  const int32_t* offsets;
  int64_t places, items, columns;

  Pairs(const Tensor& x, const Tensor& rank_offset, int64_t places_in)
      : offsets(rank_offset.data<int32_t>()), places(places_in), items(x.rows()), columns(x.row_elems()) {}

  template <class Fn> void each(int64_t begin, int64_t end, Fn&& fn) const {
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* row = offsets + i * (1 + 2 * places);
      const int64_t own = int64_t{row[0]} - 1;
      for (int64_t k = 0; k < places; ++k) {
        const int64_t other = int64_t{row[1 + 2 * k]} - 1, item = row[2 + 2 * k];
        if (own < 0 || other < 0) continue;
        AB_CHECK(own < places && other < places, InvalidArgument, "ranks must be at most MaxRank ({}), got {}", places,
                 std::max(own, other) + 1);
        AB_CHECK(item >= 0 && item < items, InvalidArgument, "items must be rows of X from 0 to {}, got {}", items - 1,
                 item);
        fn(i, item, (own * places + other) * columns);
      }
    }
  }
};

AB_OP(rank_attention)
    .doc(
        "Out[i] = the sum over the items j on the page of item i of X[j] times the matrix of RankParam for the pair of "
        "their positions, (position of i - 1) MaxRank + (position of j - 1).")
    .in("X", "[items, columns] float")
    .in("RankOffset",
        "[items, 1 + 2 MaxRank] int32: position of the item, then position and row of each item of its page; position "
        "0: none")
    .in("RankParam", "[MaxRank^2 columns, made] like X: the matrices, stacked")
    .out("Out", "[items, made] like X")
    .attr<int32_t>("MaxRank", 3, "number of positions on a page", within<int32_t>("MaxRank", 1, 1 << 14))
    .dtype_of_input("X")
    .infer(infer)
    .grad_reads({"X", "RankOffset", "RankParam"})
    .grad_to({"RankParam"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [places = int64_t{op.attr<int32_t>("MaxRank")}, x = op.in("X"), offset = op.in("RankOffset"),
              param = op.in("RankParam"), out = op.out("Out")](KernelContext& c) {
        const Pairs pairs(c[x], c[offset], places);
        const int64_t made = c[param].row_elems();
        const T *from = c[x].data<T>(), *matrices = c[param].data<T>();
        T* to = zeroed<T>(c, out);
        c.parallel_for(pairs.items, kGrain, [&](int64_t begin, int64_t end) {
          pairs.each(begin, end, [&](int64_t i, int64_t item, int64_t first) {
            T* sum = to + i * made;
            for (int64_t k = 0; k < pairs.columns; ++k) {
              const T factor = from[item * pairs.columns + k];
              const T* row = matrices + (first + k) * made;
              for (int64_t j = 0; j < made; ++j) sum[j] += factor * row[j];
            }
          });
        });
      };
    });

AB_GRAD(rank_attention)
    .doc(
        "RankParam@GRAD = for the matrix of a pair, the sum of X[j]^T Out@GRAD[i] over all pairs of these positions. X "
        "has no gradient.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [places = int64_t{op.attr<int32_t>("MaxRank")}, x = op.in("X"), offset = op.in("RankOffset"),
              dout = op.in("Out@GRAD"), dparam = op.out("RankParam@GRAD")](KernelContext& c) {
        if (!c.needs(dparam)) return;
        const Pairs pairs(c[x], c[offset], places);
        const int64_t made = c[dparam].row_elems();
        const T *from = c[x].data<T>(), *g = c[dout].data<T>();
        T* to = zeroed<T>(c, dparam);
        // Splits the columns of X: no two tasks write the same row of a matrix.
        c.parallel_for(pairs.columns, 1 + kGrain / (pairs.columns + 1), [&](int64_t begin, int64_t end) {
          pairs.each(0, pairs.items, [&](int64_t i, int64_t item, int64_t first) {
            for (int64_t k = begin; k < end; ++k) {
              const T factor = from[item * pairs.columns + k];
              T* row = to + (first + k) * made;
              for (int64_t j = 0; j < made; ++j) row[j] += factor * g[i * made + j];
            }
          });
        });
      };
    });

}  // namespace
}  // namespace anabranch::sparse::rank_attention_op
