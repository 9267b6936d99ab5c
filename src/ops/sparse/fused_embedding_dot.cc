// Products of a row with rows of a table, and sums of rows of a table, without a copy of all rows in memory: made by
// the pass fuse_embeddings from lookups and products of matrices, and bit-identical to them.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/row_locks.h"
#include "opdef/fused_ops.h"
#include "opdef/op_def.h"
#include "ops/declare/checks.h"
#include "ops/kernels/ids.h"
#include "ops/kernels/plain_product.h"
#include "ops/sparse/row_loops.h"

namespace anabranch::sparse::fused_embedding_dot_op {
namespace {

constexpr int64_t kGrainElems = 16384;
constexpr int64_t kLine = 64 / sizeof(float);
constexpr int64_t kRowsAhead = 12;  // between prefetching a row and reading it
static_assert(fused::kMostInRowProduct == kSmallWork, "the same loops must compute the product that is replaced");

// The rows of a table that belong to one sample after the other.
class LookedUp {
 public:
  explicit LookedUp(const KernelArgs& op)
      : w_(op.in("W")),
        ids_(op.in("Ids")),
        source_{"lookup_table", op.op().input("Ids").at(0), op.op().input("W").at(0)},
        padding_(op.attr<int64_t>("padding_idx")) {}

  // fn(sample, rows): `rows` points to each row of the sample. The rows are in the table, or copies one after the other
  // if they are narrow, or if other threads update the table.
  template <class Fn> void each(KernelContext& c, int64_t samples, Fn&& fn) {
    const Tensor &w = c[w_], &ids = c[ids_];
    const int64_t n = ids.numel(), count = samples ? n / samples : 0, width = w.shape()[1];
    part_.ids = as_int64(ids, &scratch_);
    check_table_ids(source_, ids, part_.ids, w.shape()[0], padding_);
    zeros_.resize(static_cast<size_t>(width));
    part_.table = w.data<float>();
    part_.width = width;
    part_.per_row = count;
    part_.padding = padding_;
    part_.zeros = zeros_.data();
    part_.shared = RowLocks::shared();
    const int64_t elems = std::max<int64_t>(1, count * width);
    const int64_t ahead = std::max<int64_t>(1, kRowsAhead / std::max<int64_t>(1, count));
    c.parallel_for(samples, std::max<int64_t>(1, kGrainElems / elems), [&](int64_t begin, int64_t end) {
      thread_local std::vector<const float*> rows;
      thread_local std::vector<float> copies;
      rows.resize(static_cast<size_t>(count));
      const bool copied = part_.shared || width < kWorthVectors;
      if (copied) copies.resize(static_cast<size_t>(elems));
      for (int64_t i = begin; i < std::min(begin + ahead, end); ++i) prefetch(i);
      for (int64_t i = begin; i < end; ++i) {
        if (i + ahead < end) prefetch(i + ahead);
        copied ? copy(i, copies.data(), rows.data()) : point_to(i, rows.data());
        fn(i, rows.data());
      }
    });
  }

 private:
  const float* row_of(int64_t id) const { return id == padding_ ? part_.zeros : part_.table + id * part_.width; }

  void prefetch(int64_t sample) const {
    const int64_t* id = part_.ids + sample * part_.per_row;
    for (int64_t k = 0; k < part_.per_row; ++k) {
      const float *row = row_of(id[k]), *last = row + part_.width - 1;
      for (; row < last; row += kLine) __builtin_prefetch(row);
      __builtin_prefetch(last);
    }
  }

  void point_to(int64_t sample, const float** rows) const {
    const int64_t* id = part_.ids + sample * part_.per_row;
    for (int64_t k = 0; k < part_.per_row; ++k) rows[k] = row_of(id[k]);
  }

  void copy(int64_t sample, float* to, const float** rows) const {
    GatherPart<float> part = part_;
    part.ids += sample * part_.per_row;
    gather_parts(&part, 1, 0, 1, to, part_.per_row * part_.width);
    for (int64_t k = 0; k < part_.per_row; ++k) rows[k] = to + k * part_.width;
  }

  In w_, ids_;
  IdSource source_;
  int64_t padding_;
  GatherPart<float> part_;
  Tensor scratch_;
  std::vector<float> zeros_;
};

void declare_rows(OpDef& def) {
  def.in("W", "[height, width] float32: the table")
      .in("Ids", "[samples, count] or [samples, count, 1] int32 or int64 in [0, height)")
      .attr<int64_t>("padding_idx", -1, "id that reads as zero; -1: none")
      .traits(kLooksUp)
      .no_grad("it is inserted after the gradients")
      .dtype_of_input("W");
}

// Number of rows for each sample.
int64_t check_rows(const InferContext& c) {
  check_rank(c, "W", 2, 2);
  check_ids_dtype(c, "Ids");
  const Shape& ids = c.in("Ids").shape;
  AB_CHECK(ids.rank() == 2 || (ids.rank() == 3 && ids[2] == 1), ShapeMismatch,
           "Ids must be [samples, count] or [samples, count, 1], got {}", ids.str());
  const int64_t most = fused::kMostInRowProduct;
  AB_CHECK(!c.runtime() || ids[1] * c.in("W").shape[1] <= most, InvalidArgument,
           "the rows of a sample must have at most {} elements, got {} rows of {}", most, ids[1], c.in("W").shape[1]);
  return ids[1];
}

// The product that was replaced: of one row with `rows`, transposed or not.
void multiply(const float* by, const float* const* rows, int64_t count, int64_t width, bool transposed, float* out) {
  if (count == 0) {
    if (!transposed) std::fill(out, out + width, 0.0f);
  } else if (width < kWorthVectors) {
    const int64_t n = transposed ? count : width, k = transposed ? width : count;
    const GemmDims d{.m = 1, .n = n, .k = k, .trans_b = transposed, .ld_a = k, .ld_b = width, .ld_c = n};
    plain_product<float>(d, 1.0f, {by, rows[0], out});
  } else if (transposed) {
    simd::dots_of_rows(by, rows, width, count, out);
  } else {
    simd::sum_of_rows(by, rows, count, width, out);
  }
}

AB_OP(fused_embedding_dot)
    .doc("Out[i, 0, k] = X[i, 0, :] . W[Ids[i, k], :].")
    .with(declare_rows)
    .in("X", "[samples, 1, width] float32")
    .out("Out", "[samples, 1, count]")
    .infer([](InferContext& c) {
      const int64_t count = check_rows(c), samples = c.in("Ids").shape[0];
      check_shape(c, "X", Shape{samples, 1, c.in("W").shape[1]});
      check_same_dtype(c, "X", "W");
      c.set_out("Out", Shape{c.in("X").shape[0], 1, count}, c.in("W").dtype);
      c.share_lod("Out", "X");
    })
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = std::make_shared<LookedUp>(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const int64_t samples = c[x].shape()[0], width = c[x].shape()[2];
        const float* from = c[x].data<float>();
        float* to = c[out].mutable_data<float>();
        const int64_t count = c[out].shape()[2];
        rows->each(c, samples, [=](int64_t i, const float* const* found) {
          multiply(from + i * width, found, count, width, true, to + i * count);
        });
      };
    });

AB_OP(fused_embedding_combine)
    .doc("Out[i, 0, :] = the sum over k of Factor[i, 0, k] * W[Ids[i, k], :].")
    .with(declare_rows)
    .in("Factor", "[samples, 1, count] float32")
    .out("Out", "[samples, 1, width]")
    .infer([](InferContext& c) {
      const int64_t count = check_rows(c), samples = c.in("Ids").shape[0];
      check_shape(c, "Factor", Shape{samples, 1, count});
      check_same_dtype(c, "Factor", "W");
      c.set_out("Out", Shape{c.in("Factor").shape[0], 1, c.in("W").shape[1]}, c.in("W").dtype);
    })
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel {
      return [rows = std::make_shared<LookedUp>(op), factor = op.in("Factor"), out = op.out("Out")](KernelContext& c) {
        const int64_t samples = c[factor].shape()[0], count = c[factor].shape()[2];
        const float* by = c[factor].data<float>();
        float* to = c[out].mutable_data<float>();
        const int64_t width = c[out].shape()[2];
        rows->each(c, samples, [=](int64_t i, const float* const* found) {
          multiply(by + i * count, found, count, width, false, to + i * width);
        });
      };
    });

}  // namespace
}  // namespace anabranch::sparse::fused_embedding_dot_op
