// The positions at which a transformed image samples the original one, for grid_sampler.
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/args_vision.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/vision/grid_functions.h"

namespace anabranch::vision::affine_grid_op {
namespace {

// [N, C, H, W]; H and W are unknown while a program is built, as in Fluid 1.8.5.
Shape infer_grid(const InferContext& c, int64_t batch) {
  const IntArg size = int_arg(c, "OutputShape", "", int_attr(c.op(), "output_shape"), kUnknown);
  AB_CHECK(!size.known || size.values.size() == 4, InvalidArgument, "output_shape must be 4 numbers, got {}",
           size.values.size());
  if (!c.runtime() || !size.known) return {batch, kUnknown, kUnknown, 2};
  AB_CHECK(size.values[2] >= 0 && size.values[3] >= 0, InvalidArgument,
           "height and width of output_shape must not be negative, got {} and {}", size.values[2], size.values[3]);
  return {batch, size.values[2], size.values[3], 2};
}

// On devices: grid is Output or its gradient.
template <class T> Kernel queued(const char* stem, In from, Out to, bool back) {
  return [kernel = device::kernel_of<T>(stem), from, to, back](const DeviceContext& c) {
    const Shape& grid = back ? c[from].shape() : c[to].shape();
    c.launch(kernel,
             device::AffineGridArgs{device::operand(c[from]), device::operand(c[to]), grid[0], grid[1], grid[2]});
  };
}

AB_OP(affine_grid)
    .doc("Output[n, h, w] = Theta[n] (x, y, 1), where x and y are the column w and the row h, scaled to [-1, 1].")
    .source("Jaderberg et al., Spatial transformer networks, NIPS 2015, arXiv:1506.02025")
    .in("Theta", "[N, 2, 3] float")
    .in_optional("OutputShape", "[4] int: replaces output_shape")
    .shape_from("OutputShape")
    .out("Output", "[N, H, W, 2]")
    .attr<std::vector<int32_t>>("output_shape", {}, "[N, C, H, W] of the output images")
    .ignores("use_cudnn", true)
    .infer([](InferContext& c) {
      check_rank(c, "Theta", 3, 3);
      const Shape& theta = c.in("Theta").shape;
      check_shape(c, "Theta", {theta[0], 2, 3});
      c.set_out("Output", infer_grid(c, theta[0]), c.in("Theta").dtype);
      c.share_lod("Output", "Theta");
    })
    .grad_reads({"OutputShape"})
    .grad_to({"Theta"})
    .dtype_of_input("Theta")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [theta = op.in("Theta"), out = op.out("Output")](KernelContext& c) {
        const int64_t rows = c[out].shape()[1], columns = c[out].shape()[2];
        const T* by = c[theta].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(c[out].shape()[0] * rows, kCheapGrain / (4 * columns + 1) + 1, [=](int64_t r) {
          const T *m = by + r / rows * 6, y = position<T>(r % rows, rows);
          for (int64_t k = 0; k < 2 * columns; ++k) {
            const T *row = m + k % 2 * 3, x = position<T>(k / 2, columns);
            to[r * columns * 2 + k] = row[0] * x + row[1] * y + row[2];
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued<T>("affine_grid", op.in("Theta"), op.out("Output"), false);
    });

AB_GRAD(affine_grid)
    .doc("Theta@GRAD[n] = the sum over h and w of Output@GRAD[n, h, w] (x, y, 1).")
    .shape_from("OutputShape")
    .infer([](InferContext& c) {
      check_rank(c, "Output@GRAD", 4, 4);
      const int64_t batch = c.in("Output@GRAD").shape[0];
      check_shape(c, "Output@GRAD", infer_grid(c, batch));
      c.set_out("Theta@GRAD", {batch, 2, 3}, c.in("Output@GRAD").dtype);
    })
    .dtype_of_input("Output@GRAD")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [dout = op.in("Output@GRAD"), dtheta = op.out("Theta@GRAD")](KernelContext& c) {
        const int64_t rows = c[dout].shape()[1], columns = c[dout].shape()[2];
        const T* from = c[dout].data<T>();
        T* to = c[dtheta].mutable_data<T>();
        c.parallel_for(c[dout].shape()[0], kCheapGrain / (8 * rows * columns + 1) + 1, [=](int64_t begin, int64_t end) {
          std::fill(to + begin * 6, to + end * 6, T{0});
          for (int64_t r = begin * rows; r < end * rows; ++r) {
            T *m = to + r / rows * 6, y = position<T>(r % rows, rows);
            for (int64_t k = 0; k < 2 * columns; ++k) {
              const T d = from[r * columns * 2 + k];
              T* row = m + k % 2 * 3;
              row[0] += d * position<T>(k / 2, columns);
              row[1] += d * y;
              row[2] += d;
            }
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued<T>("affine_grid_grad", op.in("Output@GRAD"), op.out("Theta@GRAD"), true);
    });

}  // namespace
}  // namespace anabranch::vision::affine_grid_op
