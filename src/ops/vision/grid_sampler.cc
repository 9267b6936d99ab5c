// Samples images at positions given by another tensor, between pixels.
#include "ops/declare/declare.h"
#include "ops/device/args_vision.h"
#include "ops/device/zeros.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/outputs.h"
#include "ops/vision/grid_functions.h"

namespace anabranch::vision::grid_sampler_op {
namespace {

struct Extents {
  int64_t batch, channels, rows, columns;
  explicit Extents(const Shape& x) : batch(x[0]), channels(x[1]), rows(x[2]), columns(x[3]) {}
  int64_t plane() const { return rows * columns; }
  int64_t grain() const { return kMathGrain / (channels * plane() + 1) + 1; }
};

template <class T> void sample(const Extents& e, const T* x, const T* grid, T* out) {
  for (int64_t p = 0; p < e.plane(); ++p) {
    const auto c = corners(e.rows, e.columns, grid[2 * p], grid[2 * p + 1]);
    for (int64_t k = 0; k < e.channels; ++k) {
      T sum = 0;
      for (size_t q = 0; q < 4; ++q) {
        if (c.at[q] >= 0) sum += x[k * e.plane() + c.at[q]] * c.weight[q];
      }
      out[k * e.plane() + p] = sum;
    }
  }
}

// dx and dgrid may be null; dx is zero before.
template <class T> void sample_grad(const Extents& e, const T* x, const T* grid, const T* dout, T* dx, T* dgrid) {
  for (int64_t p = 0; p < e.plane(); ++p) {
    const auto c = corners(e.rows, e.columns, grid[2 * p], grid[2 * p + 1]);
    T by_x = 0, by_y = 0;
    for (int64_t k = 0; k < e.channels; ++k) {
      const T d = dout[k * e.plane() + p];
      for (size_t q = 0; q < 4; ++q) {
        if (c.at[q] < 0) continue;
        const int64_t at = k * e.plane() + c.at[q];
        if (dx) dx[at] += d * c.weight[q];
        by_x += d * x[at] * c.by_x[q];
        by_y += d * x[at] * c.by_y[q];
      }
    }
    if (!dgrid) continue;
    dgrid[2 * p] = by_x;
    dgrid[2 * p + 1] = by_y;
  }
}

device::GridArgs args_of(const KernelContext& c, In x, In grid) {
  const Extents e(c[x].shape());
  device::GridArgs a{};
  a.x = device::operand(c[x]);
  a.grid = device::operand(c[grid]);
  a.batch = e.batch;
  a.channels = e.channels;
  a.rows = e.rows;
  a.columns = e.columns;
  return a;
}

AB_OP(grid_sampler)
    .doc(
        "Samples images at positions: Output[n, c, h, w] is X[n, c] at the position Grid[n, h, w], interpolated "
        "between the four pixels around it. Pixels outside the image count as 0.")
    .source("Jaderberg et al., Spatial transformer networks, NIPS 2015, arXiv:1506.02025")
    .in("X", "[N, C, H, W] float")
    .in("Grid", "[N, H, W, 2], dtype of X: column and row of each position, from -1 (first) to 1 (last)")
    .out("Output", "like X")
    .ignores("use_cudnn", true)
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      const Shape& x = c.in("X").shape;
      check_shape(c, "Grid", {x[0], x[2], x[3], 2});
      if (c.runtime()) check_same_dtype(c, "X", "Grid");
      c.same_as("Output", "X");
    })
    .grad_reads({"X", "Grid"})
    .dtype_of_input("X")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), grid = op.in("Grid"), out = op.out("Output")](KernelContext& c) {
        const Extents e(c[x].shape());
        const T *from = c[x].data<T>(), *places = c[grid].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(e.batch, e.grain(), [=](int64_t n) {
          const int64_t image = n * e.channels * e.plane();
          sample(e, from + image, places + n * e.plane() * 2, to + image);
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("grid_sample"), x = op.in("X"), grid = op.in("Grid"),
              out = op.out("Output")](const DeviceContext& c) {
        device::GridArgs a = args_of(c, x, grid);
        a.y = device::operand(c[out]);
        c.launch(kernel, a);
      };
    });

AB_GRAD(grid_sampler)
    .doc("X@GRAD = Output@GRAD distributed to the pixels read; Grid@GRAD = their change to the right and down.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), grid = op.in("Grid"), dout = op.in("Output@GRAD"), dx = op.out("X@GRAD"),
              dgrid = op.out("Grid@GRAD")](KernelContext& c) {
        const Extents e(c[x].shape());
        const T *from = c[x].data<T>(), *places = c[grid].data<T>(), *d = c[dout].data<T>();
        T *to = zeroed<T>(c, dx), *to_grid = needed<T>(c, dgrid);
        c.parallel_each(e.batch, e.grain(), [=](int64_t n) {
          const int64_t image = n * e.channels * e.plane(), grids = n * e.plane() * 2;
          sample_grad(e, from + image, places + grids, d + image, to ? to + image : nullptr,
                      to_grid ? to_grid + grids : nullptr);
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("grid_sample_grad"), x = op.in("X"), grid = op.in("Grid"),
              dout = op.in("Output@GRAD"), dx = op.out("X@GRAD"), dgrid = op.out("Grid@GRAD")](const DeviceContext& c) {
        device::GridArgs a = args_of(c, x, grid);
        a.dout = device::operand(c[dout]);
        a.y = device::needed_operand(c, dx);
        a.dgrid = device::needed_operand(c, dgrid);
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::vision::grid_sampler_op
