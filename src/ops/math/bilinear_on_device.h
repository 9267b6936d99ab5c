// The building blocks of bilinear_tensor_product on devices.
#pragma once
#include <array>

#include "ops/device/gemm.h"
#include "ops/device/launch_fold.h"
#include "ops/device/scratch.h"

namespace anabranch::math {

struct BilinearSizes {
  int64_t n, m, dx, dy;  // samples, matrices, extents of the vectors
  BilinearSizes(const Shape& x, const Shape& w) : n(x[0]), m(w[0]), dx(w[1]), dy(w[2]) {}
};

// Shared by forward and backward on devices: for all matrices at once, [K, N, width].
template <class T> class BilinearThere {
 public:
  // Rows of x (or, transposed, of y) times each matrix.
  Tensor& times_weights(const DeviceContext& c, const BilinearSizes& s, const Tensor& rows, const Tensor& w,
                        bool transposed) {
    const int64_t in = transposed ? s.dy : s.dx, width = transposed ? s.dx : s.dy;
    Tensor& made = each_.of(c, Shape{s.m, s.n, width}, dtype_of<T>);
    gemm_.run(c,
              {.m = s.n,
               .n = width,
               .k = in,
               .trans_b = transposed,
               .batch = s.m,
               .batch_stride_b = s.dx * s.dy,
               .batch_stride_c = s.n * width},
              rows, w, made);
    return made;
  }
  // out = x, optionally repeated for each matrix, times y: a number per row and matrix, or a row per matrix.
  void multiply(const DeviceContext& c, const BilinearSizes& s, const Tensor& x, const Tensor& y, bool numbers,
                Tensor& out) {
    const int64_t width = out.shape()[2], of_x = x.numel() == out.numel() ? s.n * width : 0;
    const std::array<int64_t, 3> of_y =
        numbers ? std::array<int64_t, 3>{1, s.m, 0} : std::array<int64_t, 3>{0, width, 1};
    NdLoop<3> loop;
    loop.add_axis(s.m, {s.n * width, of_x, of_y[0]});
    loop.add_axis(s.n, {width, width, of_y[1]});
    loop.add_axis(width, {1, 1, of_y[2]});
    c.launch(multiply_, device::BinaryArgs{
                            device::operand(x), device::operand(y), device::operand(out), device::axes_of(loop), {}});
  }
  // out [N, K], from [K, N, width].
  void sum_rows(const DeviceContext& c, const BilinearSizes& s, const Tensor& x, Tensor& out) {
    const int64_t width = x.shape()[2];
    NdLoop<1> kept, gone;
    kept.add_axis(s.n, {width});
    kept.add_axis(s.m, {s.n * width});
    gone.add_axis(width, {1});
    c.launch(sum_, device::FoldAxesArgs{device::operand(x), device::operand(out), device::axes_of(kept),
                                        device::axes_of(gone)});
  }
  void sum_first(const DeviceContext& c, const Tensor& x, Tensor& out) {
    Shape folded = x.shape();
    folded.set(0, 1);
    device::launch_fold(c, sum_, x, x.shape(), folded, out);
  }
  // d(X W[k] Y) / dX for all matrices or, transposed, with respect to Y.
  void side(const DeviceContext& c, const BilinearSizes& s, const Tensor& rows, const Tensor& w, bool transposed,
            const Tensor& dout, Tensor& to) {
    Tensor& terms = times_weights(c, s, rows, w, transposed);
    multiply(c, s, terms, dout, true, terms);
    sum_first(c, terms, to);
  }
  void weights(const DeviceContext& c, const BilinearSizes& s, const Tensor& x, const Tensor& y, const Tensor& dout,
               Tensor& to) {
    Tensor& scaled = each_.of(c, Shape{s.m, s.n, s.dx}, dtype_of<T>);
    multiply(c, s, x, dout, true, scaled);
    gemm_.run(c,
              {.m = s.dx,
               .n = s.dy,
               .k = s.n,
               .trans_a = true,
               .batch = s.m,
               .batch_stride_a = s.n * s.dx,
               .batch_stride_c = s.dx * s.dy},
              scaled, y, to);
  }

 private:
  device::Scratch each_;
  device::Gemm<T> gemm_;
  ab_kernel multiply_ = device::kernel_of<T>("binary/mul"), sum_ = device::kernel_of<T>("fold_axes/sum");
};

}  // namespace anabranch::math
