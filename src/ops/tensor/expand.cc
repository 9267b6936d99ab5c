// Tiles tensors along their axes: expand, expand_as.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/reduce.h"

namespace anabranch::tensor::expand_op {
namespace {

using device::OnDevice, device::OnHost;

// Splits axis i of the tiled tensor in two: copy and element. Operand 0 traverses the tiled tensor, 1 the source.
NdLoop<2> tile_loop(const Shape& x, const Shape& tiled) {
  const auto from = dense_strides(x), to = dense_strides(tiled);
  NdLoop<2> loop;
  for (int i = 0; i < x.rank(); ++i) {
    loop.add_axis(x[i] ? tiled[i] / x[i] : 0, {to[i] * x[i], 0});
    loop.add_axis(x[i], {to[i], from[i]});
  }
  return loop;
}

void check_tiles(const Shape& x, const Shape& tiled) {
  AB_CHECK(x.rank() == tiled.rank(), ShapeMismatch, "X must have the rank of the result {}, got {}", tiled.str(),
           x.str());
  for (int i = 0; i < x.rank(); ++i) {
    const bool fits = x[i] < 0 || tiled[i] < 0 || (x[i] == 0 ? tiled[i] == 0 : tiled[i] % x[i] == 0);
    AB_CHECK(fits, ShapeMismatch, "the result {} must be a multiple of X at axis {}, got {}", tiled.str(), i, x.str());
  }
}

template <class On> Kernel tile_kernel(const KernelArgs& op) {
  return [on = On(op.dtype()), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    on.strided(c, tile_loop(c[x].shape(), c[out].shape()), c[x], 0, &c[out], 0);
  };
}

constexpr auto untile_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
    fold_loop<FoldSum<T>>(c, turned(tile_loop(c[dx].shape(), c[dout].shape())), c[dout].data<T>(),
                          c[dx].mutable_data<T>(), c[dx].numel());
  };
};

constexpr auto untile_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("fold_axes/sum"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](KernelContext& c) {
    device::sum_along(c, kernel, turned(tile_loop(c[dx].shape(), c[dout].shape())), c[dout], 0, &c[dx]);
  };
};

AB_OP(expand)
    .doc("Out = X repeated along each axis.")
    .in("X", "[...] any")
    .in_optional("ExpandTimes", "[rank] int: replaces expand_times")
    .in_optional_list("expand_times_tensor", "[1] int each")
    .shape_from("ExpandTimes")
    .shape_from("expand_times_tensor")
    .out("Out", "[extents times expand_times]")
    .attr<std::vector<int32_t>>("expand_times", {}, "number of copies along each axis, >= 1")
    .infer([](InferContext& c) {
      const Shape& x = c.in("X").shape;
      const bool list = c.has_in("expand_times_tensor");
      const IntArg times = int_arg(c, list ? "" : "ExpandTimes", "expand_times_tensor",
                                   int_attr(c.op(), "expand_times"), kUnknown, static_cast<size_t>(x.rank()));
      AB_CHECK(static_cast<int>(times.values.size()) == x.rank(), InvalidArgument,
               "expand_times must have one entry per axis of X {}, got {}", x.str(), times.values.size());
      Shape out;
      for (int i = 0; i < x.rank(); ++i) {
        const int64_t n = times.values[static_cast<size_t>(i)];
        AB_CHECK(n >= 1 || (n == kUnknown && !c.runtime()), InvalidArgument,
                 "expand_times[{}] must be at least 1, got {}", i, n);
        out.push_back(n < 0 || x[i] < 0 ? kUnknown : n * x[i]);
      }
      c.set_out("Out", out, c.in("X").dtype);
      if (out.rank() && out[0] == x[0]) c.share_lod("Out", "X");
    })
    .grad_reads({"X", "ExpandTimes", "expand_times_tensor"})
    .grad_to({"X"})
    .cpu_any(tile_kernel<OnHost>)
    .device_any(tile_kernel<OnDevice>);

AB_GRAD(expand)
    .doc("X@GRAD = the sum of Out@GRAD over the copies.")
    .grad(second_order::linear)
    .shape_from("ExpandTimes")
    .shape_from("expand_times_tensor")
    .cpu<float, double>(untile_kernel)
    .device<float, double, float16, bfloat16>(untile_on_device);

AB_OP(expand_as)
    .doc("Repeats X along each axis up to the shape of target_tensor.")
    .in("X", "[...] any")
    .in("target_tensor", "[...]: the tensor whose shape is used")
    .out("Out", "[shape of target_tensor], dtype of X")
    .infer([](InferContext& c) {
      check_tiles(c.in("X").shape, c.in("target_tensor").shape);
      c.set_out("Out", c.in("target_tensor").shape, c.in("X").dtype);
    })
    .grad_reads({"X", "target_tensor"})
    .grad_to({"X"})
    .cpu_any(tile_kernel<OnHost>)
    .device_any(tile_kernel<OnDevice>);

AB_GRAD(expand_as)
    .doc("X@GRAD = the sum of Out@GRAD over the copies.")
    .grad(second_order::linear)
    .cpu<float, double>(untile_kernel)
    .device<float, double, float16, bfloat16>(untile_on_device);

}  // namespace
}  // namespace anabranch::tensor::expand_op
