// Windows of images as rows of sequences, one sequence per image: the input of recurrent layers that read a text line.
#include <algorithm>
#include <limits>

#include "ops/declare/attr_checks.h"
#include "ops/device/args_vision.h"
#include "ops/device/launch.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::im2sequence_op {
namespace {

using Ints = std::vector<int32_t>;

// The attributes: extents and strides of a window, padding of the image.
struct Windows {
  int64_t height, width, down, right, top, left, bottom, after, image_down, image_right;

  template <class Source> explicit Windows(const Source& c) {
    const auto get = [&](const char* name, size_t k) { return static_cast<int64_t>(c.template attr<Ints>(name)[k]); };
    height = get("kernels", 0), width = get("kernels", 1), down = get("strides", 0), right = get("strides", 1);
    top = get("paddings", 0), left = get("paddings", 1), bottom = get("paddings", 2), after = get("paddings", 3);
    image_down = get("out_stride", 0), image_right = get("out_stride", 1);
  }
  static int64_t fit(int64_t extent, int64_t window, int64_t step) {
    return std::max<int64_t>(0, (extent - window) / step + 1);  // towards zero, as window_count.h explains
  }
  int64_t rows(int64_t h) const { return fit(h + top + bottom, height, down); }
  int64_t columns(int64_t w) const { return fit(w + left + after, width, right); }
};

std::function<void(const Ints&)> numbers(const char* name, size_t count, int32_t low) {
  return [=](const Ints& v) {
    AB_CHECK(v.size() == count, InvalidArgument, "{} must be {} numbers, got {}", name, count, v.size());
    for (const int32_t n : v) AB_CHECK(n >= low, InvalidArgument, "{} must be at least {}, got {}", name, low, n);
  };
}

struct Extent {
  int64_t rows, columns;  // number of windows
};

// Extents of an image that is only partly valid: Y has its size before layers reduced it.
int64_t real_extent(double size, int64_t smaller, int64_t most) {
  const double extent = std::clamp(size, 0.0, static_cast<double>(most) * static_cast<double>(smaller));
  return std::min(most, (static_cast<int64_t>(extent) + smaller - 1) / smaller);
}

Extent windows_of(const Windows& windows, const Shape& x, const Tensor* y, int64_t image) {
  if (!y) return {windows.rows(x[2]), windows.columns(x[3])};
  const auto size = [&](int64_t k) {
    const double v = y->dtype() == DType::kFloat64 ? y->data<double>()[image * 2 + k] : y->data<float>()[image * 2 + k];
    AB_CHECK(v >= 0, InvalidArgument, "Y must hold heights and widths of images, at least 0, got {}", v);
    return v;
  };
  return {windows.rows(real_extent(size(0), windows.image_down, x[2])),
          windows.columns(real_extent(size(1), windows.image_right, x[3]))};
}

void infer(InferContext& c) {
  check_rank(c, "X", 4, 4);
  const Shape& x = c.in("X").shape;
  const Windows windows(c);
  const int64_t width = x[1] == kUnknown ? kUnknown : x[1] * windows.height * windows.width;
  if (c.has_in("Y")) {
    check_shape(c, "Y", Shape{x[0], 2});
    AB_CHECK(c.in("Y").dtype == DType::kFloat32 || c.in("Y").dtype == DType::kFloat64, InvalidArgument,
             "Y must hold float32 or float64, got {}", dtype_name(c.in("Y").dtype));
  }
  if (!c.runtime()) {
    c.set_out("Out", Shape{kUnknown, width}, c.in("X").dtype);
    c.out("Out").lod_level = 1;
    return;
  }
  Offsets ends{0};
  for (int64_t n = 0; n < x[0]; ++n) {
    const Extent e = windows_of(windows, x, c.has_in("Y") ? c.in("Y").value : nullptr, n);
    ends.push_back(ends.back() + e.rows * e.columns);
  }
  c.set_out("Out", Shape{ends.back(), width}, c.in("X").dtype);
  set_lod(c, "Out", one_level(std::move(ends)));
}

// A row of a window: where its elements inside the image start in X, where it starts in Out, and how many of its
// elements are left of the image and inside.
struct Chunk {
  int64_t from, to, skipped, count;
};

// Calls fn(segment) for one image.
template <class Fn> void each_chunk(const Windows& w, const Shape& x, int64_t image, const Extent& extent, Fn&& fn) {
  const int64_t channels = x[1], h = x[2], width = x[3], row_width = channels * w.height * w.width;
  for (int64_t r = 0; r < extent.rows; ++r) {
    for (int64_t k = 0; k < extent.columns; ++k) {
      const int64_t at = (r * extent.columns + k) * row_width, left = k * w.right - w.left;
      const int64_t skipped = std::min(w.width, std::max<int64_t>(0, -left));
      const int64_t count = std::max<int64_t>(0, std::min(w.width, width - left) - skipped);
      for (int64_t channel = 0; channel < channels; ++channel) {
        for (int64_t i = 0; i < w.height; ++i) {
          const int64_t y = r * w.down - w.top + i;
          fn(Chunk{((image * channels + channel) * h + y) * width + left + skipped,
                   at + (channel * w.height + i) * w.width, skipped, y < 0 || y >= h ? 0 : count});
        }
      }
    }
  }
}

struct Parts {
  In x, y;
  Windows windows;
  explicit Parts(const KernelArgs& op) : x(op.in("X")), y(op.in("Y")), windows(op) {}

  // Calls fn(segment) for all images in parallel.
  template <class Fn> void each(const KernelContext& c, const Offsets& o, int64_t row_width, const Fn& fn) const {
    const Shape& shape = c[x].shape();
    c.parallel_each(shape[0], 1, [&](int64_t n) {
      const Extent e = windows_of(windows, shape, y ? &c[y] : nullptr, n);
      const int64_t begin = o[static_cast<size_t>(n)] * row_width;
      each_chunk(windows, shape, n, e, [&](Chunk p) {
        p.to += begin;
        fn(p);
      });
    });
  }
};

// On devices: from X to Out, or gradients back.
template <class T> Kernel queued(const char* stem, const KernelArgs& op, In from, Out to, bool back) {
  AB_CHECK(!op.in("Y"), Unsupported, "Y is not supported on devices: the number of windows must be known on the host");
  return [kernel = device::kernel_of<T>(stem), w = Windows(op), from, to, back](const DeviceContext& c) {
    if (back && !c.needs(to)) return;
    const Shape& x = back ? c[to].shape() : c[from].shape();
    device::UnfoldArgs a{};
    a.x = device::operand(c[from]);
    a.y = device::operand(c[to]);
    a.planes = x[0] * x[1];
    a.channels = x[1];
    a.in[0] = x[2], a.in[1] = x[3];
    a.out[0] = w.rows(x[2]), a.out[1] = w.columns(x[3]);
    a.kernel[0] = w.height, a.kernel[1] = w.width;
    a.stride[0] = w.down, a.stride[1] = w.right;
    a.dilation[0] = a.dilation[1] = 1;
    a.before[0] = w.top, a.before[1] = w.left;
    if (a.channels > 0) c.launch(kernel, a);
  };
}

AB_OP(im2sequence)
    .doc(
        "Out = one row per window of each image, left to right, then down; a row holds the window channel by channel, "
        "row by row.")
    .in("X", "[batch, channels, height, width] float")
    .in_optional("Y",
                 "[batch, 2] float, height and width of each image before it was reduced by out_stride: windows beyond "
                 "them are dropped")
    .out("Out", "[windows, channels * kernels[0] * kernels[1]], one sequence per image")
    .attr<Ints>("kernels", {1, 1}, "height and width of a window", numbers("kernels", 2, 1))
    .attr<Ints>("strides", {1, 1}, "strides of the window, down and to the right", numbers("strides", 2, 1))
    .attr<Ints>("paddings", {0, 0, 0, 0}, "zero padding above, left, below and right; negative: crops",
                numbers("paddings", 4, std::numeric_limits<int32_t>::min()))
    .attr<Ints>("out_stride", {1, 1}, "factor by which X is smaller than Y", numbers("out_stride", 2, 1))
    .dtype_of_input("X")
    .shape_from("Y")
    .infer(infer)
    .grad_reads({"X", "Y"})
    .grad_to({"X"})
    .grad([](GradContext& g) {
      auto op = g.op("im2sequence_grad").in("X", g.in("X")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
      if (!g.in("Y").empty()) op.in("Y", g.in("Y"));
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [parts = Parts(op), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        parts.each(c, offsets(c[out]), c[out].shape()[1], [=, width = parts.windows.width](const Chunk& p) {
          T* row = to + p.to;
          for (int64_t k = 0; k < width; ++k) {
            const bool inside = k >= p.skipped && k < p.skipped + p.count;
            row[k] = inside ? from[p.from + k - p.skipped] : T{0};
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued<T>("unfold", op, op.in("X"), op.out("Out"), false);
    });

AB_GRAD(im2sequence)
    .doc("X@GRAD = the sum of the gradients of all windows that contain an element.")
    .dtype_of_input("X")
    .shape_from("Y")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [parts = Parts(op), dout = op.in("Out@GRAD"), x = op.in("X"), y = op.in("Y"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const T* g = c[dout].data<T>();
        T* to = zeroed<T>(c, dx);
        Offsets ends{0};
        for (int64_t n = 0; n < c[x].shape()[0]; ++n) {
          const Extent e = windows_of(parts.windows, c[x].shape(), y ? &c[y] : nullptr, n);
          ends.push_back(ends.back() + e.rows * e.columns);
        }
        parts.each(c, ends, c[dout].shape()[1], [=](const Chunk& p) {
          for (int64_t k = 0; k < p.count; ++k) to[p.from + k] += g[p.to + p.skipped + k];
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return queued<T>("unfold_grad", op, op.in("Out@GRAD"), op.out("X@GRAD"), true);
    });

}  // namespace
}  // namespace anabranch::sequence::im2sequence_op
