// The windows of images as columns.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ops/declare/declare.h"
#include "ops/device/args_vision.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/window_count.h"
#include "ops/vision/extents.h"

namespace anabranch::vision::unfold_op {
namespace {

using Ints = std::vector<int32_t>;

// A window along one axis; 0 is the height, 1 the width.
struct Axis {
  int64_t kernel, stride, dilation, before, after;
  int64_t outputs(int64_t in) const {
    if (in < 0) return kUnknown;
    return window_count(dilation * (kernel - 1) + 1, stride, in, before, after);
  }
};

using Axes = std::array<Axis, 2>;

const Ints& numbers(const ir::Op& op, const char* name, size_t count, int32_t low) {
  const auto& v = op.attr<Ints>(name);
  AB_CHECK(v.size() == count && std::all_of(v.begin(), v.end(), [=](int32_t x) { return x >= low; }), InvalidArgument,
           "{} must be {} numbers of at least {}, got [{}]", name, count, low, fmt::join(v, ", "));
  return v;
}

// Paddings are top, left, bottom, right; negative ones crop rows or columns.
Axes axes_of(const ir::Op& op) {
  const Ints &kernel = numbers(op, "kernel_sizes", 2, 1), &stride = numbers(op, "strides", 2, 1),
             &dilation = numbers(op, "dilations", 2, 0),
             &padding = numbers(op, "paddings", 4, std::numeric_limits<int32_t>::min());
  Axes a;
  for (size_t d = 0; d < 2; ++d) a[d] = {kernel[d], stride[d], dilation[d], padding[d], padding[d + 2]};
  return a;
}

struct Windows {
  Axes axes;
  int64_t rows, columns, out_rows, out_columns;
  Windows(const Axes& a, const Shape& x)
      : axes(a), rows(x[2]), columns(x[3]), out_rows(a[0].outputs(x[2])), out_columns(a[1].outputs(x[3])) {}
  int64_t taps() const { return product(axes[0].kernel, axes[1].kernel); }
  int64_t in_plane() const { return rows * columns; }
  int64_t out_plane() const { return taps() * out_rows * out_columns; }

  // Calls fn(output, first, last, input) for the rows of outputs of one channel: elements `first` up to `last` of a row
  // are inside the image, starting at `input`, a stride apart.
  template <class Fn> void each_row(Fn&& fn) const {
    const int64_t stride = axes[1].stride;
    int64_t at = 0;
    for (int64_t tap = 0; tap < taps(); ++tap) {
      const int64_t top = tap / axes[1].kernel * axes[0].dilation - axes[0].before,
                    left = tap % axes[1].kernel * axes[1].dilation - axes[1].before;
      const int64_t first = std::min(out_columns, left < 0 ? (-left + stride - 1) / stride : 0);
      const int64_t end = left < columns ? std::min(out_columns, (columns - 1 - left) / stride + 1) : 0;
      for (int64_t i = 0; i < out_rows; ++i, at += out_columns) {
        const int64_t row = top + i * axes[0].stride;
        const bool inside = row >= 0 && row < rows && first < end;
        fn(at, first, inside ? end : first, row * columns + left + first * stride);
      }
    }
  }
};

void infer(InferContext& c) {
  check_rank(c, "X", 4, 4);
  const Shape& x = c.in("X").shape;
  const Windows w(axes_of(c.op()), x);
  const int64_t windows = w.out_columns < 0 ? kUnknown : product(w.out_rows, w.out_columns);
  c.set_out("Y", {x[0], product(x[1], w.taps()), windows}, c.in("X").dtype);
}

// On devices: from X to Y, or their gradients from Y to X. x: the shape of X.
void launch(const DeviceContext& c, ab_kernel kernel, const Axes& axes, const Shape& x, const Tensor& from,
            Tensor& to) {
  const Windows w(axes, x);
  device::UnfoldArgs a{};
  a.x = device::operand(from);
  a.y = device::operand(to);
  a.planes = x[0] * x[1];
  a.in[0] = w.rows, a.in[1] = w.columns;
  a.out[0] = w.out_rows, a.out[1] = w.out_columns;
  for (size_t d = 0; d < 2; ++d) {
    a.kernel[d] = axes[d].kernel;
    a.stride[d] = axes[d].stride;
    a.dilation[d] = axes[d].dilation;
    a.before[d] = axes[d].before;
  }
  c.launch(kernel, a);
}

AB_OP(unfold)
    .doc("Y[n, (c kh + i) kw + j, l] = the element (i, j) of window l of channel c of image n; 0 in the padding.")
    .in("X", "[N, C, H, W] float")
    .out("Y", "[N, C kh kw, L], windows from left to right, then down")
    .required_attr("kernel_sizes", AttrType::kInts, "[kh, kw]")
    .required_attr("strides", AttrType::kInts, "strides down and to the right, at least 1")
    .required_attr("paddings", AttrType::kInts, "[top, left, bottom, right]")
    .required_attr("dilations", AttrType::kInts, "distances between taps, down and to the right")
    .traits(kRowWise)
    .infer(infer)
    .grad_reads({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axes = axes_of(op.op()), x = op.in("X"), out = op.out("Y")](KernelContext& c) {
        const Windows w(axes, c[x].shape());
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_each(c[x].shape()[0] * c[x].shape()[1], kCheapGrain / w.out_plane() + 1, [&](int64_t k) {
          const T* image = from + k * w.in_plane();
          T* windows = to + k * w.out_plane();
          w.each_row([=, &w](int64_t o, int64_t first, int64_t last, int64_t i) {
            T* row = windows + o;
            std::fill(row, row + first, T{0});
            for (int64_t j = first; j < last; ++j, i += w.axes[1].stride) row[j] = image[i];
            std::fill(row + last, row + w.out_columns, T{0});
          });
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("unfold"), axes = axes_of(op.op()), x = op.in("X"),
              out = op.out("Y")](const DeviceContext& c) { launch(c, kernel, axes, c[x].shape(), c[x], c[out]); };
    });

AB_GRAD(unfold)
    .doc("X@GRAD = the sum of Y@GRAD over the windows that contain an element.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [axes = axes_of(op.op()), dout = op.in("Y@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const Windows w(axes, c[dx].shape());
        const T* from = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_for(c[dx].shape()[0] * c[dx].shape()[1], kCheapGrain / w.out_plane() + 1,
                       [&](int64_t begin, int64_t end) {
                         std::fill(to + begin * w.in_plane(), to + end * w.in_plane(), T{0});
                         for (int64_t k = begin; k < end; ++k) {
                           const T* windows = from + k * w.out_plane();
                           T* image = to + k * w.in_plane();
                           w.each_row([=, &w](int64_t o, int64_t first, int64_t last, int64_t i) {
                             for (int64_t j = first; j < last; ++j, i += w.axes[1].stride) image[i] += windows[o + j];
                           });
                         }
                       });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [kernel = device::kernel_of<T>("unfold_grad"), axes = axes_of(op.op()), dout = op.in("Y@GRAD"),
           dx = op.out("X@GRAD")](const DeviceContext& c) { launch(c, kernel, axes, c[dx].shape(), c[dout], c[dx]); };
    });

}  // namespace
}  // namespace anabranch::vision::unfold_op
