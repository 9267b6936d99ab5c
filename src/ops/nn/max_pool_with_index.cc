// Maxima of windows of images and volumes, with their indices.
#include <limits>

#include "ops/declare/declare.h"
#include "ops/device/args_vision.h"
#include "ops/device/launch.h"
#include "ops/kernels/copy.h"
#include "ops/nn/pool_dims.h"

namespace anabranch::nn::max_pool_with_index_op {
namespace {

using Ints = std::vector<int32_t>;

template <int kAxes> PoolDims indexed_dims(const ir::Op& op, const Shape& x) {
  AB_CHECK(x.rank() == kAxes + 2, InvalidArgument, "X must have {} axes, got {}", kAxes + 2, x.str());
  PoolDims d;
  d.batch = x[0];
  d.channels = x[1];
  d.adaptive = op.attr<bool>("adaptive");
  const Extents in = extents_of(x, 2, kAxes);
  const bool whole = op.attr<bool>("global_pooling");
  const auto& ksize = op.attr<Ints>("ksize");
  AB_CHECK(ksize.size() == kAxes, InvalidArgument, "ksize must be {} numbers, got {}", kAxes, ksize.size());
  const Extents kernel = whole ? in : positive_extents("ksize", ksize, kAxes);
  if (d.adaptive) {
    d.window = {.axes = kAxes, .in = in, .out = kernel, .kernel = kernel};
    return d;
  }
  if (whole) {
    d.adaptive = true;  // with one window
    d.window = {.axes = kAxes, .in = in, .out = positive_extents("ksize", Ints(kAxes, 1), kAxes), .kernel = in};
    return d;
  }
  const auto& paddings = op.attr<Ints>("paddings");
  AB_CHECK(paddings.size() == kAxes, InvalidArgument, "paddings must be {} numbers, got {}", kAxes, paddings.size());
  const WindowAttrs attrs{kAxes, op.attr<Ints>("strides"), paddings, Ints(kAxes, 1), "EXPLICIT", "NCHW"};
  d.window = resolve_window(attrs, in, kernel, Rounding::kFloor);
  return d;
}

template <int kAxes> void infer(InferContext& c) {
  const PoolDims d = indexed_dims<kAxes>(c.op(), c.in("X").shape);
  c.set_out("Out", d.output_shape(), c.in("X").dtype);
  c.set_out("Mask", d.output_shape(), DType::kInt32);
}

// The maximum of a window and its index. As in Fluid 1.8.5, NaN is skipped, and a window without elements gives the
// lowest float32 and -1.
template <class T>
void largest(const PoolDims& d, const std::array<PoolDims::Range, 3>& r, const T* x, T* out, int32_t* at) {
  *out = static_cast<T>(std::numeric_limits<float>::lowest());
  *at = -1;
  for (int64_t z = r[0].begin; z < r[0].end; ++z) {
    for (int64_t y = r[1].begin; y < r[1].end; ++y) {
      const int64_t row = (z * d.window.in[1] + y) * d.window.in[2];
      for (int64_t k = row + r[2].begin; k < row + r[2].end; ++k) {
        if (!(*out < x[k])) continue;
        *out = x[k];
        *at = static_cast<int32_t>(k);
      }
    }
  }
}

template <class T> void pool_plane(const PoolDims& d, const T* x, T* out, int32_t* mask) {
  int64_t o = 0;
  for (int64_t z = 0; z < d.window.out[0]; ++z) {
    const auto depth = d.window.axes == 3 ? d.range(0, z) : PoolDims::Range{0, 1};
    for (int64_t y = 0; y < d.window.out[1]; ++y) {
      const auto rows = d.range(1, y);
      for (int64_t k = 0; k < d.window.out[2]; ++k, ++o) {
        largest(d, {depth, rows, d.range(2, k)}, x, out + o, mask + o);
      }
    }
  }
}

// The window arguments of device kernels; an image is a volume with one layer.
device::PoolIndexArgs pool_args(const PoolDims& d) {
  device::PoolIndexArgs a{};
  const Window& w = d.window;
  a.planes = d.batch * d.channels;
  a.adaptive = d.adaptive;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const bool there = axis >= 3 - w.axes;
    a.in[axis] = there ? w.in[k] : 1;
    a.out[axis] = there ? w.out[k] : 1;
    a.kernel[axis] = there ? w.kernel[k] : 1;
    a.stride[axis] = there ? w.stride[k] : 1;
    a.before[axis] = there ? w.before[k] : 0;
  }
  return a;
}

template <int kAxes> void pool(OpDef& def) {
  def.out("Out", "[N, C, ...], the maximum of each window")
      .out("Mask", "like Out, int32: the index of that element in its image or volume; -1: the window has none")
      .required_attr("ksize", AttrType::kInts, "extents of the window, or of the output if adaptive")
      .attr<bool>("global_pooling", false, "the window is the whole image")
      .attr<bool>("adaptive", false, "windows divide the image evenly")
      .attr<Ints>("strides", Ints(kAxes, 1), "strides of the window")
      .attr<Ints>("paddings", Ints(kAxes, 0), "padding before and after the image on each axis")
      .traits(kRowWise)
      .infer(infer<kAxes>)
      .grad_reads({"X"}, {"Mask"})
      .grad_from({"Out"});
  def.cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    DimsOf<PoolDims, decltype(&indexed_dims<kAxes>)> dims(op.op(), indexed_dims<kAxes>);
    return [=, x = op.in("X"), out = op.out("Out"), mask = op.out("Mask")](KernelContext& c) mutable {
      const PoolDims& d = dims(c[x].shape());
      const int64_t in = volume(d.window.in), outs = volume(d.window.out);
      const T* from = c[x].data<T>();
      T* to = c[out].mutable_data<T>();
      auto* at = c[mask].mutable_data<int32_t>();
      c.parallel_each(d.batch * d.channels, kMathGrain / (in + 1) + 1,
                      [&](int64_t p) { pool_plane(d, from + p * in, to + p * outs, at + p * outs); });
    };
  });
}

template <int kAxes, class T> Kernel pool_on_device(const KernelArgs& op) {
  DimsOf<PoolDims, decltype(&indexed_dims<kAxes>)> dims(op.op(), indexed_dims<kAxes>);
  return [dims, kernel = device::kernel_of<T>("max_pool_index"), x = op.in("X"), out = op.out("Out"),
          mask = op.out("Mask")](const DeviceContext& c) mutable {
    device::PoolIndexArgs a = pool_args(dims(c[x].shape()));
    a.x = device::operand(c[x]);
    a.y = device::operand(c[out]);
    a.mask = device::operand(c[mask]);
    c.launch(kernel, a);
  };
}

template <int kAxes, class T> Kernel pool_gradient_on_device(const KernelArgs& op) {
  DimsOf<PoolDims, decltype(&indexed_dims<kAxes>)> dims(op.op(), indexed_dims<kAxes>);
  return [dims, kernel = device::kernel_of<T>("max_pool_index_grad"), mask = op.in("Mask"), dout = op.in("Out@GRAD"),
          dx = op.out("X@GRAD")](const DeviceContext& c) mutable {
    device::PoolIndexArgs a = pool_args(dims(c[dx].shape()));
    a.x = device::operand(c[dout]);
    a.mask_in = device::operand(c[mask]);
    a.y = device::operand(c[dx]);
    c.launch(kernel, a);
  };
}

template <int kAxes> void pool_gradient(OpDef& def) {
  def.doc("X@GRAD = the sum of Out@GRAD over the windows whose maximum an element is.")
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
        return [mask = op.in("Mask"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
          const Shape& x = c[dx].shape();
          const int64_t in = x.numel(2, x.rank()), outs = c[dout].shape().numel(2, x.rank());
          const auto* at = c[mask].data<int32_t>();
          const T* from = c[dout].data<T>();
          T* to = c[dx].mutable_data<T>();
          c.parallel_for(x[0] * x[1], kCheapGrain / (in + 1) + 1, [=](int64_t begin, int64_t end) {
            std::fill(to + begin * in, to + end * in, T{0});
            for (int64_t o = begin * outs; o < end * outs; ++o) {
              AB_CHECK(at[o] >= -1 && at[o] < in, InvalidArgument, "Mask must hold indices below {}, got {}", in,
                       at[o]);
              if (at[o] >= 0) to[o / outs * in + at[o]] += from[o];
            }
          });
        };
      });
}

AB_OP(max_pool2d_with_index)
    .doc("Out = the maximum of each window of an image; Mask = its index.")
    .in("X", "[N, C, H, W] float")
    .with(pool<2>)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pool_on_device<2, T>(op);
    });
AB_GRAD(max_pool2d_with_index)
    .with(pool_gradient<2>)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pool_gradient_on_device<2, T>(op);
    });

AB_OP(max_pool3d_with_index)
    .doc("Out = the maximum of each window of a volume; Mask = its index.")
    .in("X", "[N, C, D, H, W] float")
    .with(pool<3>)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pool_on_device<3, T>(op);
    });
AB_GRAD(max_pool3d_with_index)
    .with(pool_gradient<3>)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pool_gradient_on_device<3, T>(op);
    });

}  // namespace
}  // namespace anabranch::nn::max_pool_with_index_op
