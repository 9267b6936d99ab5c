// Pads images: top, bottom, left and right.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/nn/blocked.h"
#include "ops/tensor/border.h"

namespace anabranch::tensor {
namespace {

enum class Edge { kConstant, kReflect, kEdge };

struct ImagePad {
  std::vector<int64_t> fixed;
  In tensor;
  Edge edge;
  bool last;          // channels last
  int64_t block = 0;  // of channels, in blocked layout
  int64_t rows_axis() const { return last ? 1 : 2; }

  explicit ImagePad(const ir::Op& op) : fixed(int_attr(op, "paddings")) {
    const auto& mode = op.attr<std::string>("mode");
    const auto& format = op.attr<std::string>("data_format");
    AB_CHECK(mode == "constant" || mode == "reflect" || mode == "edge", InvalidArgument,
             "mode must be constant, reflect or edge, got \"{}\"", mode);
    AB_CHECK(format == "NCHW" || format == "NHWC", InvalidArgument, "data_format must be NCHW or NHWC, got \"{}\"",
             format);
    edge = mode == "constant" ? Edge::kConstant : mode == "reflect" ? Edge::kReflect : Edge::kEdge;
    last = format == "NHWC";
  }
  // For a kernel: in blocked layout, a block of channels of a sample is an image whose channels are last.
  static ImagePad in_memory(const ir::Op& op) {
    ImagePad pad(op);
    if (!nn::is_blocked(op, nn::kBlocked)) return pad;
    pad.block = nn::channel_block();
    pad.last = true;
    return pad;
  }
  Shape laid(const Shape& s) const { return block == 0 ? s : Shape{s[0] * s[1] / block, s[2], s[3], block}; }
  Border border(const std::vector<int64_t>& p, const Shape& x) const {
    AB_CHECK(x.rank() == 4, ShapeMismatch, "X must have 4 axes, got {}", x.str());
    AB_CHECK(p.size() == 4, InvalidArgument, "paddings must be 4 numbers, got {}", p.size());
    Border b;
    for (size_t k = 0; k < 2; ++k) {
      const auto axis = static_cast<size_t>(rows_axis()) + k;
      const int64_t extent = x[static_cast<int>(axis)];
      b.before[axis] = p[2 * k];
      b.after[axis] = p[2 * k + 1];
      const int64_t largest = std::max(p[2 * k], p[2 * k + 1]);
      AB_CHECK(extent < 0 || extent + std::min<int64_t>(p[2 * k], 0) + std::min<int64_t>(p[2 * k + 1], 0) >= 0,
               InvalidArgument, "paddings must not cut more than the extent {}, got {}", extent, fmt::join(p, ", "));
      AB_CHECK(edge != Edge::kReflect || extent < 0 || largest < std::max<int64_t>(extent, 1), InvalidArgument,
               "paddings of mode reflect must be below the extent {}, got {}", extent, largest);
      AB_CHECK(edge != Edge::kEdge || extent != 0 || largest <= 0, InvalidArgument,
               "the padded axes of X must not be empty in mode edge, got {}", x.str());
    }
    return b;
  }
  // The row or column of X at position p of the padded one; -1: the constant.
  int64_t source(int64_t p, int64_t before, int64_t extent) const {
    const int64_t at = p - before;
    if (at >= 0 && at < extent) return at;
    if (edge == Edge::kConstant) return -1;
    if (edge == Edge::kEdge) return at < 0 ? 0 : extent - 1;
    return at < 0 ? -at : 2 * (extent - 1) - at;
  }
};

// Calls fn(first element of the padded image, first element of X or -1, count) for all elements of image n of the
// batch, in order: the elements between the borders of a row are one run. A border below 0 cuts the image.
template <class Fn>
void each_run(const ImagePad& pad, const Border& b, const Shape& x, const Shape& out, int64_t image, Fn fn) {
  const auto r = static_cast<int>(pad.rows_axis());
  const int64_t channels = pad.last ? x[3] : 1, width = x[r + 1], out_width = out[r + 1];
  const int64_t left = b.before[static_cast<size_t>(r) + 1];
  const int64_t first = std::max<int64_t>(left, 0), cut = first - left;
  const int64_t inner = std::min(width - cut, out_width - first);
  for (int64_t i = 0; i < out[r]; ++i) {
    const int64_t row = pad.source(i, b.before[static_cast<size_t>(r)], x[r]);
    const int64_t to = (image * out[r] + i) * out_width, from = (image * x[r] + row) * width;
    if (row < 0) {
      fn(to * channels, -1, out_width * channels);
      continue;
    }
    const auto border = [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const int64_t column = pad.source(j, left, width);
        fn((to + j) * channels, column < 0 ? -1 : (from + column) * channels, channels);
      }
    };
    border(0, first);
    fn((to + first) * channels, (from + cut) * channels, inner * channels);
    border(first + inner, out_width);
  }
}

std::vector<int64_t> image_paddings(const KernelContext& c, const ImagePad& pad, In tensor) {
  return tensor ? integers_of(c[tensor], "Paddings") : pad.fixed;
}

// By "pad2d" or, for the gradient, "pad2d_grad".
template <class T> Kernel pad2d_on_device(const KernelArgs& op, const char* stem, const char* from, const char* to) {
  device::refuse_inputs(op, {"Paddings"});
  return [kernel = device::kernel_of<T>(stem), pad = ImagePad(op.op()),
          value = static_cast<double>(op.attr<float>("pad_value")), x = op.in(from), out = op.out(to),
          back = op.has_in("Out@GRAD")](const DeviceContext& c) {
    const Shape& s = back ? c[out].shape() : c[x].shape();
    const Border b = pad.border(pad.fixed, s);
    const auto rows = static_cast<size_t>(pad.rows_axis()), cols = rows + 1;
    device::Pad2dArgs a{};
    a.x = device::operand(c[x]);
    a.y = device::operand(c[out]);
    a.images = pad.last ? s[0] : s[0] * s[1];
    a.rows = s[static_cast<int>(rows)];
    a.cols = s[static_cast<int>(cols)];
    a.channels = pad.last ? s[3] : 1;
    a.top = b.before[rows], a.bottom = b.after[rows];
    a.left = b.before[cols], a.right = b.after[cols];
    a.value = value;
    a.mode = static_cast<int32_t>(pad.edge);  // the values of Edge
    c.launch(kernel, a);
  };
}

AB_OP(pad2d)
    .doc("Out = the images X with a border: constant, mirrored without the edge, or the edge repeated.")
    .in("X", "[N, C, H, W] or [N, H, W, C] numbers")
    .in_optional("Paddings", "[4] int: replaces paddings")
    .shape_from("Paddings")
    .out("Out", "with H and W padded")
    .attr<std::vector<int32_t>>("paddings", {0, 0, 0, 0}, "top, bottom, left, right")
    .attr<float>("pad_value", 0.0f, "value of the border in mode constant")
    .attr<std::string>("mode", "constant", "constant, reflect or edge")
    .attr<std::string>("data_format", "NCHW", "NCHW or NHWC")
    .images({"X", "Out"}, nn::kBlocked)
    .infer([](InferContext& c) {
      const Shape& x = c.in("X").shape;
      const ImagePad pad(c.op());
      const IntArg p = int_arg(c, "Paddings", "", pad.fixed, 0);
      Shape out = padded(x, pad.border(p.values, x));
      for (int k = 0; k < 2 && !p.known; ++k) out.set(static_cast<int>(pad.rows_axis()) + k, kUnknown);
      c.set_out("Out", out, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .grad_reads({"X", "Paddings"})
    .grad_to({"X"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [pad = ImagePad::in_memory(op.op()), value = static_cast<T>(op.attr<float>("pad_value")), x = op.in("X"),
              tensor = op.in("Paddings"), out = op.out("Out")](KernelContext& c) {
        const Shape from = pad.laid(c[x].shape()), to = pad.laid(c[out].shape());
        const Border b = pad.border(image_paddings(c, pad, tensor), from);
        const T* in = c[x].data<T>();
        T* result = c[out].mutable_data<T>();
        c.parallel_each(pad.last ? from[0] : from[0] * from[1], 1, [&](int64_t n) {
          each_run(pad, b, from, to, n, [=](int64_t at, int64_t source, int64_t count) {
            if (source < 0) {
              std::fill_n(result + at, count, value);
            } else {
              std::copy_n(in + source, count, result + at);
            }
          });
        });
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad2d_on_device<T>(op, "pad2d", "X", "Out");
    });

AB_GRAD(pad2d)
    .doc("X@GRAD = Out@GRAD, each element added at its source.")
    .grad(pad_with_zeros)
    .shape_from("Paddings")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [pad = ImagePad::in_memory(op.op()), tensor = op.in("Paddings"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Shape to = pad.laid(c[dx].shape()), from = pad.laid(c[dout].shape());
        const Border b = pad.border(image_paddings(c, pad, tensor), to);
        zero_bytes(c, &c[dx]);
        const T* in = c[dout].data<T>();
        T* result = c[dx].mutable_data<T>();
        c.parallel_each(pad.last ? to[0] : to[0] * to[1], 1, [&](int64_t n) {
          each_run(pad, b, to, from, n, [=](int64_t at, int64_t source, int64_t count) {
            for (int64_t k = 0; source >= 0 && k < count; ++k) result[source + k] += in[at + k];
          });
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return pad2d_on_device<T>(op, "pad2d_grad", "Out@GRAD", "X@GRAD");
    });

}  // namespace
}  // namespace anabranch::tensor
