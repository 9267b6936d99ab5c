// Circular convolution of the rows of two matrices.
#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/outputs.h"

namespace anabranch::math::conv_shift_op {
namespace {

void infer(InferContext& c) {
  check_rank(c, "X", 2, 2);
  check_rank(c, "Y", 2, 2);
  check_same_dtype(c, "X", "Y");
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  AB_CHECK(compatible(x.slice(0, 1), y.slice(0, 1)), ShapeMismatch,
           "X and Y must have the same number of rows, got {} and {}", x.str(), y.str());
  AB_CHECK(y[1] == kUnknown || y[1] % 2 == 1, InvalidArgument, "Y must have an odd number of columns, got {}", y.str());
  AB_CHECK(x[1] == kUnknown || y[1] == kUnknown || y[1] <= x[1], InvalidArgument,
           "Y must not have more columns than X, got {} and {}", y.str(), x.str());
  c.same_as("Out", "X");
}

// Calls fn(row, element of X, element of Y, element of Out) for every product.
template <class Fn> void each_product(const Shape& x, int64_t width, int64_t begin, int64_t end, Fn&& fn) {
  const int64_t n = x[1], half = (width - 1) / 2;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) fn(r * n + (i + j - half + n) % n, r * width + j, r * n + i);
    }
  }
}

int64_t row_grain(int64_t products) { return kCheapGrain / std::max<int64_t>(1, products) + 1; }

AB_OP(conv_shift)
    .doc("Out[r, i] = sum over j of X[r, (i + j - (M - 1) / 2) mod N] Y[r, j].")
    .source("Graves et al., Neural Turing machines, arXiv:1410.5401, eq. 8")
    .in("X", "[B, N] float")
    .in("Y", "[B, M] like X, M odd and at most N")
    .out("Out", "[B, N]")
    .infer(infer)
    .grad_reads({"X", "Y"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int64_t width = c[y].shape()[1];
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = zeroed<T>(c, out);
        c.parallel_for(s[0], row_grain(s[1] * width), [=](int64_t begin, int64_t end) {
          each_product(s, width, begin, end, [=](int64_t i, int64_t j, int64_t k) { to[k] += a[i] * b[j]; });
        });
      };
    });

AB_GRAD(conv_shift)
    .doc("X@GRAD and Y@GRAD = the sums over products of Out@GRAD times the other factor.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int64_t width = c[y].shape()[1];
        const T *a = c[x].data<T>(), *b = c[y].data<T>(), *g = c[dout].data<T>();
        T *to_x = zeroed<T>(c, dx), *to_y = zeroed<T>(c, dy);
        c.parallel_for(s[0], row_grain(s[1] * width), [=](int64_t begin, int64_t end) {
          each_product(s, width, begin, end, [=](int64_t i, int64_t j, int64_t k) {
            if (to_x) to_x[i] += g[k] * b[j];
            if (to_y) to_y[j] += g[k] * a[i];
          });
        });
      };
    });

}  // namespace
}  // namespace anabranch::math::conv_shift_op
