// Products of the channels of two stacks of feature maps, averaged over their pixels.
#include <numeric>

#include "ops/declare/declare.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/simd.h"

namespace anabranch::vision {
namespace {

struct Maps {
  int64_t batch, left, right, pixels;
  Maps(const Shape& x, const Shape& y) : batch(x[0]), left(x[1]), right(y[1]), pixels(x[2] * x[3]) {}
  int64_t grain() const { return kCheapGrain / (left * right * pixels + 1) + 1; }
};

// out[i] = the sum over k of by[i * i_step + k * k_step] of[k], / pixels, for `rows` rows i; `of` has rows of pixels.
template <class T>
void mix(const Maps& m, int64_t rows, int64_t i_step, int64_t terms, int64_t k_step, const T* by, const T* of, T* out) {
  std::fill(out, out + rows * m.pixels, T{0});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < terms; ++k) {
      const T factor = by[i * i_step + k * k_step] / static_cast<T>(m.pixels);
      for (int64_t p = 0; p < m.pixels; ++p) out[i * m.pixels + p] += factor * of[k * m.pixels + p];
    }
  }
}

float product_of(const float* x, const float* y, int64_t n) { return simd::dot(x, y, n); }
double product_of(const double* x, const double* y, int64_t n) { return std::inner_product(x, x + n, y, 0.0); }

template <class T> void products(const Maps& m, const T* x, const T* y, T* out) {
  for (int64_t i = 0; i < m.left; ++i) {
    for (int64_t k = 0; k < m.right; ++k) {
      const T sum = product_of(x + i * m.pixels, y + k * m.pixels, m.pixels);
      out[i * m.right + k] = sum / static_cast<T>(m.pixels);
    }
  }
}

AB_OP(fsp)
    .doc("Out[n, i, j] = the mean over all pixels of X[n, i] Y[n, j].")
    .source("Yim et al., A gift from knowledge distillation, CVPR 2017, doi:10.1109/CVPR.2017.754")
    .in("X", "[N, Cx, H, W] float")
    .in("Y", "[N, Cy, H, W] as X")
    .out("Out", "[N, Cx, Cy]")
    .traits(kRowWise)
    .infer([](InferContext& c) {
      check_tensor(c, "X");
      check_tensor(c, "Y");
      check_rank(c, "X", 4, 4);
      check_rank(c, "Y", 4, 4);
      check_same_dtype(c, "X", "Y");
      const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
      check_shape(c, "Y", {x[0], y[1], x[2], x[3]});
      AB_CHECK(x[2] != 0 && x[3] != 0, InvalidArgument, "X must have pixels, got {}", x.str());
      c.set_out("Out", {x[0], x[1], y[1]}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Y"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        const Maps m(c[x].shape(), c[y].shape());
        const T *a = c[x].data<T>(), *b = c[y].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(m.batch, m.grain(), [=](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            products(m, a + n * m.left * m.pixels, b + n * m.right * m.pixels, to + n * m.left * m.right);
          }
        });
      };
    });

AB_GRAD(fsp)
    .doc("X@GRAD[n, i] = the sum over j of Out@GRAD[n, i, j] Y[n, j] / (H W); likewise Y@GRAD.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
              dy = op.out("Y@GRAD")](KernelContext& c) {
        const Maps m(c[x].shape(), c[y].shape());
        const T *a = c[x].data<T>(), *b = c[y].data<T>(), *d = c[dout].data<T>();
        T *da = wanted<T>(c, dx), *db = wanted<T>(c, dy);
        c.parallel_for(m.batch, m.grain(), [=](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            const T* by = d + n * m.left * m.right;
            const int64_t left = n * m.left * m.pixels, right = n * m.right * m.pixels;
            if (da) mix(m, m.left, m.right, m.right, 1, by, b + right, da + left);
            if (db) mix(m, m.right, 1, m.left, m.right, by, a + left, db + right);
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::vision
