// The first two columns of a click-through feature are counts: shows and clicks.
#include <algorithm>
#include <cmath>

#include "ops/kernels/flat_loop.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sparse::cvm_op {
namespace {

constexpr int64_t kCounts = 2;

Shape y_shape(const InferContext& c) {
  check_rank(c, "X", 2, 2);
  Shape out = c.in("X").shape;
  AB_CHECK(out[1] == kUnknown || out[1] >= kCounts, InvalidArgument, "X must have at least two columns, got {}",
           out.str());
  if (!c.attr<bool>("use_cvm") && out[1] != kUnknown) out.set(1, out[1] - kCounts);
  return out;
}

// With one LoD level, row r of X belongs to the row of CVM of its sequence.
template <class Fn> void each_row(const Tensor& x, Fn&& fn) {
  if (x.lod().empty()) {
    for (int64_t r = 0; r < x.rows(); ++r) fn(r, r);
    return;
  }
  const auto& o = x.lod().back();
  for (size_t s = 1; s < o.size(); ++s) {
    for (int64_t r = o[s - 1]; r < o[s]; ++r) fn(r, static_cast<int64_t>(s) - 1);
  }
}

// Rows [begin, end) with the logarithms of their counts: copies several rows at once and changes them while they are in
// the cache, because separate copies of unaligned rows cost nearly twice as much.
template <class T> void rows_with_counts(const T* from, T* to, int64_t begin, int64_t end, int64_t width) {
  const int64_t step = std::max<int64_t>(1, kCheapGrain / 4 / width);
  for (int64_t first = begin; first < end; first += step) {
    const int64_t last = std::min(end, first + step);
    std::copy(from + first * width, from + last * width, to + first * width);
    for (int64_t r = first; r < last; ++r) {
      T* own = to + r * width;
      own[0] = std::log(own[0] + 1);
      own[1] = std::log(own[1] + 1) - own[0];
    }
  }
}

void check_counts(const InferContext& c) {
  check_rank(c, "CVM", 2, 2);
  check_shape(c, "CVM", Shape{kUnknown, kCounts});
  check_same_dtype(c, "CVM", "X");
  if (!c.runtime()) return;
  const Meta& x = c.in("X");
  const bool grouped = x.lod && !x.lod->empty();
  const int64_t samples = grouped ? sequence::count(sequence::lod_of(c, "X").back()) : x.shape[0];
  check_shape(c, "CVM", Shape{samples, kCounts});
}

AB_OP(cvm)
    .doc(
        "With use_cvm the first two columns of Y, show and click, become ln(show + 1) and ln(click + 1) - ln(show + "
        "1); without it they are dropped.")
    .in("X", "[rows, D] float, D at least 2")
    .in("CVM", "[samples, 2]: show and click of each sample, used as the gradient of the two columns")
    .out("Y", "[rows, D], or [rows, D - 2] without use_cvm")
    .attr<bool>("use_cvm", true, "keeps the two columns")
    .infer([](InferContext& c) {
      const Shape y = y_shape(c);
      check_rank(c, "CVM", 2, 2);
      c.set_out("Y", y, c.in("X").dtype);
      c.share_lod("Y", "X");
    })
    .grad_reads({"X", "CVM"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kept = op.attr<bool>("use_cvm"), x = op.in("X"), y = op.out("Y")](KernelContext& c) {
        const int64_t rows = c[x].rows(), width = c[x].row_elems(), grain = kCheapGrain / width + 1;
        const T* from = c[x].data<T>();
        T* to = c[y].mutable_data<T>();
        c.parallel_for(rows, grain, [=](int64_t begin, int64_t end) {
          if (kept) return rows_with_counts(from, to, begin, end, width);
          for (int64_t r = begin; r < end; ++r) {
            const T* row = from + r * width;
            std::copy(row + kCounts, row + width, to + r * (width - kCounts));
          }
        });
      };
    });

AB_GRAD(cvm)
    .doc("X@GRAD = Y@GRAD, with the counts of CVM in the first two columns, which update the table of counts.")
    .grad_lod("X@GRAD", "X")
    .infer([](InferContext& c) {
      infer_gradient(c);
      check_counts(c);
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kept = op.attr<bool>("use_cvm"), x = op.in("X"), counts = op.in("CVM"), dy = op.in("Y@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const int64_t width = c[x].row_elems(), skipped = kept ? 0 : kCounts;
        const T *g = c[dy].data<T>(), *count = c[counts].data<T>();
        T* to = c[dx].mutable_data<T>();
        each_row(c[x], [=](int64_t row, int64_t sample) {
          for (int64_t k = 0; k < width; ++k) {
            to[row * width + k] = k < kCounts ? count[sample * kCounts + k] : g[row * (width - skipped) + k - skipped];
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::sparse::cvm_op
