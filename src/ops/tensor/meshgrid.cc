// Coordinates of a grid from those of its axes.
#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/reduce.h"

namespace anabranch::tensor::meshgrid_op {
namespace {

using device::OnDevice, device::OnHost;

constexpr int kMostAxes = 6;  // as in Fluid

void infer_meshgrid(InferContext& c) {
  const int n = c.n_in("X");
  AB_CHECK(n >= 1 && n <= kMostAxes, InvalidArgument, "X must list 1 to {} vectors, got {}", kMostAxes, n);
  AB_CHECK(c.n_out("Out") == n, InvalidArgument, "Out must list one tensor for each of the {} X, got {}", n,
           c.n_out("Out"));
  Shape grid;
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.shape.rank() <= 1, ShapeMismatch, "X[{}] must have one axis, got {}", i, x.shape.str());
    AB_CHECK(x.dtype == c.in("X").dtype, InvalidArgument, "X[{}] must hold {}, like X[0], got {}", i,
             dtype_name(c.in("X").dtype), dtype_name(x.dtype));
    grid.push_back(x.shape.numel());
  }
  for (int i = 0; i < n; ++i) c.set_out("Out", grid, c.in("X", i).dtype, i);
}

template <class On> Kernel meshgrid_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), xs = op.in("X"), outs = op.out("Out")](KernelContext& c) {
    for (int i = 0; i < outs.count; ++i) {
      if (!c.needs(outs, i)) continue;
      const Shape& grid = c.at(outs, i).shape();
      const auto steps = dense_strides(grid);
      NdLoop<2> loop;
      for (int a = 0; a < grid.rank(); ++a) loop.add_axis(grid[a], {steps[a], a == i});
      on.strided(c, loop, c.at(xs, i), 0, &c.at(outs, i), 0);
    }
  };
}

AB_OP(meshgrid)
    .doc("Out[i] at a point of the grid = X[i] at that point's index on axis i.")
    .in_list("X", "[n] numbers each, 1 to 6 of them: the coordinates on each axis")
    .out_list("Out", "[n of X[0], n of X[1], ...] each")
    .infer(infer_meshgrid)
    .grad_reads({"X"})
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return meshgrid_kernel<OnHost>(op); })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return meshgrid_kernel<OnDevice>(op);
    });

// Operand 0 traverses one axis of a grid, operand 1 the grid.
NdLoop<2> others_folded(const Shape& grid, int axis) {
  const auto steps = dense_strides(grid);
  NdLoop<2> loop;
  for (int a = 0; a < grid.rank(); ++a) loop.add_axis(grid[a], {a == axis, steps[a]});
  return loop;
}

AB_GRAD(meshgrid)
    .doc("X@GRAD[i] = the sum of Out@GRAD[i] over the other axes.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [douts = op.in("Out@GRAD"), dxs = op.out("X@GRAD")](KernelContext& c) {
        for (int i = 0; i < dxs.count; ++i) {
          if (!c.needs(dxs, i)) continue;
          Tensor& dx = c.at(dxs, i);
          const auto loop = others_folded(c.at(douts, i).shape(), i);
          fold_loop<FoldSum<T>>(c, loop, c.at(douts, i).data<T>(), dx.mutable_data<T>(), dx.numel());
        }
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("fold_axes/sum"), douts = op.in("Out@GRAD"),
              dxs = op.out("X@GRAD")](KernelContext& c) {
        for (int i = 0; i < dxs.count; ++i) {
          if (!c.needs(dxs, i)) continue;
          device::sum_along(c, kernel, others_folded(c.at(douts, i).shape(), i), c.at(douts, i), 0, &c.at(dxs, i));
        }
      };
    });

}  // namespace
}  // namespace anabranch::tensor::meshgrid_op
