// Bilinear similarity of each row of one sequence with each row of another: x W y, for several matrices W.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/workspace.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence::match_matrix_tensor_op {
namespace {

void infer(InferContext& c) {
  for (const char* slot : {"X", "Y"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "W");
  }
  check_rank(c, "W", 3, 3);
  const int64_t channels = c.attr<int32_t>("dim_t");
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  check_shape(c, "W", Shape{x[1], channels, y[1]});
  int64_t rows = kUnknown;
  LoDRef lod;
  if (c.runtime()) {
    const Offsets &a = single_level(c, "X")[0], &b = single_level(c, "Y")[0];
    AB_CHECK(a.size() == b.size(), InvalidArgument, "X and Y must have the same number of sequences, got {} and {}",
             count(a), count(b));
    Offsets ends{0};
    for (size_t s = 1; s < a.size(); ++s) {
      ends.push_back(ends.back() + (a[s] - a[s - 1]) * (b[s] - b[s - 1]) * channels);
    }
    rows = ends.back();
    lod = one_level(std::move(ends));
  }
  c.set_out("Out", Shape{rows, 1}, c.in("X").dtype);
  c.out("Out").lod_level = c.in("X").lod_level;  // as Fluid 1.8.5 declares it
  c.out("Out").lod = std::move(lod);
  const int64_t width = y[1] < 0 ? kUnknown : y[1] * channels;
  c.set_out("Tmp", Shape{x[0] < 0 || width < 0 ? kUnknown : x[0] * width, 1}, c.in("X").dtype);
}

// The pairs of one sequence: rows of X and Y, and the start of its results.
struct Pairs {
  int64_t x, y, rows, columns, out;
};

// Calls fn(pairs) for each sequence, in parallel.
template <class Fn>
void each(const KernelContext& c, const Tensor& x, const Tensor& y, int64_t channels, const Fn& fn) {
  const Offsets &a = offsets(x), &b = offsets(y);
  std::vector<int64_t> starts{0};
  for (size_t s = 1; s < a.size(); ++s) {
    starts.push_back(starts.back() + (a[s] - a[s - 1]) * (b[s] - b[s - 1]) * channels);
  }
  c.parallel_each(count(a), 1, [&](int64_t k) {
    const auto s = static_cast<size_t>(k);
    fn(Pairs{a[s], b[s], a[s + 1] - a[s], b[s + 1] - b[s], starts[s]});
  });
}

constexpr int64_t kAtOnce = 8;  // columns of a result that are summed together

// Rows of Y as columns, zero-padded to a multiple of kAtOnce; returns that multiple.
template <class T> int64_t transpose(const T* rows, int64_t count, int64_t width, Workspace* room, T** columns) {
  const int64_t padded = (count + kAtOnce - 1) / kAtOnce * kAtOnce;
  T* to = *columns = room->get<T>(padded * width);
  for (int64_t k = 0; k < width; ++k) {
    for (int64_t j = 0; j < padded; ++j) to[k * padded + j] = j < count ? rows[j * width + k] : T{0};
  }
  return padded;
}

// One row of a matrix: the products of `a` with `count` columns.
template <class T>
void row_of_products(const T* a, const T* columns, int64_t padded, int64_t width, int64_t count, T* to) {
  for (int64_t j = 0; j < count; j += kAtOnce) {
    T sums[kAtOnce] = {};
    for (int64_t k = 0; k < width; ++k) {
      const T* b = columns + k * padded + j;
      for (int64_t i = 0; i < kAtOnce; ++i) sums[i] += a[k] * b[i];
    }
    for (int64_t i = 0; i < std::min(kAtOnce, count - j); ++i) to[j + i] = sums[i];
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), y = op.in("Y"), w = op.in("W");
  const Out out = op.out("Out"), products = op.out("Tmp");
  return [=, gemm = std::make_shared<Gemm<T>>()](KernelContext& c) {
    const int64_t channels = c[w].shape()[1], width = c[y].shape()[1], step = channels * width;
    T *tmp = c[products].mutable_data<T>(), *to = c[out].mutable_data<T>();
    gemm->run(c, {.m = c[x].shape()[0], .n = step, .k = c[x].shape()[1]}, c[x].data<T>(), c[w].data<T>(), tmp);
    const T* right = c[y].data<T>();
    each(c, c[x], c[y], channels, [=](const Pairs& p) {
      Workspace room;
      T* columns;
      const int64_t padded = transpose(right + p.y * width, p.columns, width, &room, &columns);
      for (int64_t i = 0; i < p.rows * channels; ++i) {
        const int64_t t = i / p.rows, row = i % p.rows;
        row_of_products(tmp + (p.x + row) * step + t * width, columns, padded, width, p.columns,
                        to + p.out + i * p.columns);
      }
    });
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const In x = op.in("X"), y = op.in("Y"), w = op.in("W"), products = op.in("Tmp"), dout = op.in("Out@GRAD");
  const Out dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"), dw = op.out("W@GRAD");
  return [=, scratch = std::make_shared<Tensor>(), by_x = std::make_shared<Gemm<T>>(),
          by_w = std::make_shared<Gemm<T>>()](KernelContext& c) {
    const int64_t channels = c[w].shape()[1], width = c[y].shape()[1], step = channels * width;
    const int64_t rows = c[x].shape()[0], inner = c[x].shape()[1];
    scratch->resize(Shape{rows, step}, dtype_of<T>);
    T* dtmp = scratch->template mutable_data<T>();
    std::fill(dtmp, dtmp + rows * step, T{0});
    T* to = zeroed<T>(c, dy);
    const T *tmp = c[products].data<T>(), *right = c[y].data<T>(), *g = c[dout].data<T>();
    each(c, c[x], c[y], channels, [=](const Pairs& p) {
      const T* slope = g + p.out;
      for (int64_t t = 0; t < channels; ++t) {
        for (int64_t i = 0; i < p.rows; ++i) {
          const int64_t at = (p.x + i) * step + t * width;
          for (int64_t j = 0; j < p.columns; ++j, ++slope) {
            const int64_t row = (p.y + j) * width;
            for (int64_t k = 0; k < width; ++k) dtmp[at + k] += *slope * right[row + k];
            for (int64_t k = 0; to && k < width; ++k) to[row + k] += *slope * tmp[at + k];
          }
        }
      }
    });
    if (c.needs(dx)) {
      by_x->run(c, {.m = rows, .n = inner, .k = step, .trans_b = true}, dtmp, c[w].data<T>(), c[dx].mutable_data<T>());
    }
    if (c.needs(dw)) {
      by_w->run(c, {.m = inner, .n = step, .k = rows, .trans_a = true}, c[x].data<T>(), dtmp, c[dw].mutable_data<T>());
    }
  };
};

AB_OP(match_matrix_tensor)
    .doc("Out = for each sequence the numbers x W[:, t, :] y, for all t, rows x of X and rows y of Y.")
    .source("Wan et al., Match-SRNN, IJCAI 2016")
    .in("X", "[rows, D] float with LoD")
    .in("Y", "[rows, E] float, with the same number of sequences")
    .in("W", "[D, dim_t, E]")
    .out("Out", "[numbers, 1], dim_t matrices per sequence: rows of X by rows of Y")
    .out("Tmp", "[rows * dim_t * E, 1], X W")
    .attr<int32_t>("dim_t", 1, "number of matrices", at_least("dim_t", 1))
    .dtype_of_input("X")
    .infer(infer)
    .grad_reads({"X", "Y", "W"}, {"Tmp"})
    .grad_from({"Out"})
    .cpu<float, double>(forward);

AB_GRAD(match_matrix_tensor)
    .doc("Gradients of match_matrix_tensor with respect to X, Y and W.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .grad_lod("Y@GRAD", "Y")
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::sequence::match_matrix_tensor_op
