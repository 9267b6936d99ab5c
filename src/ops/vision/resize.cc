// Resizes images and volumes: bilinear_interp, nearest_interp, bicubic_interp, trilinear_interp. The attribute
// interp_method selects the method of each of these ops, as in 1.8.5.
#include <algorithm>
#include <limits>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/vision/resample_on_device.h"
#include "ops/vision/resizer.h"

namespace anabranch::vision::resize_op {
namespace {

constexpr const char* kSizes[] = {"out_d", "out_h", "out_w"};

// A scaled extent; 0 if it does not fit into 32 bits.
int64_t scaled(int64_t extent, float scale) {
  const float to = static_cast<float>(extent) * scale;
  return to < static_cast<float>(std::numeric_limits<int32_t>::max()) ? static_cast<int64_t>(to) : 0;
}

// The output extents from inputs and attributes, in order of precedence: SizeTensor, OutSize, Scale, scale, attributes.
// While a program is built, the attributes replace values that are not known yet.
struct Needed {
  Extents sizes{1, 1, 1};
  float scale = 0;
  bool known = true;
};

std::vector<int64_t> given_sizes(const InferContext& c, int axes) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < c.n_in("SizeTensor"); ++i) {
    const Tensor* one = c.in("SizeTensor", i).value;
    AB_CHECK(!one || one->numel() == 1, ShapeMismatch, "SizeTensor[{}] must be [1], got {}", i, one->shape().str());
    if (one) sizes.push_back(integers_of(*one, "SizeTensor")[0]);
  }
  if (!sizes.empty() || !c.has_in("OutSize")) return sizes;
  check_shape(c, "OutSize", {axes});
  const Tensor* all = c.in("OutSize").value;
  return all ? integers_of(*all, "OutSize") : sizes;
}

float given_scale(const InferContext& c, float scale, bool* known) {
  if (!c.has_in("Scale")) return scale;
  const Meta& m = c.in("Scale");
  AB_CHECK(m.dtype == DType::kFloat32, InvalidArgument, "Scale must hold float32, got {}", dtype_name(m.dtype));
  const Tensor* one = scalar_in(c, "Scale");
  *known = one != nullptr;
  return one ? one->data<float>()[0] : 0;
}

Needed needed(const InferContext& c, int axes) {
  AB_CHECK(!c.has_in("SizeTensor") || c.n_in("SizeTensor") == axes, InvalidArgument,
           "SizeTensor must be {} numbers, got {}", axes, c.n_in("SizeTensor"));
  Needed w;
  const auto sizes = given_sizes(c, axes);
  for (int d = 3 - axes; d < 3; ++d) {
    w.sizes[static_cast<size_t>(d)] =
        sizes.empty() ? c.attr<int32_t>(kSizes[d]) : sizes[static_cast<size_t>(d - (3 - axes))];
  }
  if (!sizes.empty() || c.has_in("SizeTensor")) return w;
  w.scale = given_scale(c, c.attr<float>("scale"), &w.known);
  return w;
}

void infer(InferContext& c) {
  check_rank(c, "X", 4, 5);
  const Shape& x = c.in("X").shape;
  const int axes = x.rank() - 2;
  method_of(c.op(), x.rank());
  const bool last = channels_last(c.op());
  const Extents in = nn::extents_of(x, nn::first_axis(last), axes);
  const Needed w = needed(c, axes);
  Extents out{1, 1, 1};
  for (auto d = static_cast<size_t>(3 - axes); d < 3; ++d) {
    out[d] = !w.known || (w.scale > 0 && in[d] < 0) ? kUnknown : w.scale > 0 ? scaled(in[d], w.scale) : w.sizes[d];
    AB_CHECK(!c.runtime() || out[d] > 0, InvalidArgument, "the extents of Out must be at least 1, got {} of X {}",
             out[d], x.str());
    if (out[d] <= 0) out[d] = kUnknown;
    AB_CHECK(in[d] != 0, InvalidArgument, "X must hold images with elements, got {}", x.str());
  }
  c.set_out("Out", nn::image_shape(x[0], x[nn::channel_axis(x, last)], out, axes, last), c.in("X").dtype);
  if (c.has_in("OutSize")) c.share_lod("Out", "X");
}

template <class T> Kernel forward(const KernelArgs& op) {
  using W = Sum<T>;
  return [r = Resizer<W>(op.op()), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
    if (c[out].numel() == 0) return;
    const Images g = r.fit(c[x].shape(), c[out].shape());
    const T* from = c[x].data<T>();
    T* to = c[out].mutable_data<T>();
    const int64_t per_image = g.out[0] * g.out[1];
    with_taps(r.columns().count(), c[x].shape().rank() == 5, [&](auto taps, auto rows) {
      c.parallel_each(g.outer * per_image, row_grain(g, taps), [&](int64_t row) {
        const int64_t in_image = row % per_image;
        make_row<T, W, taps, rows>(g, r, in_image / g.out[1], in_image % g.out[1],
                                   from + row / per_image * g.in_elems(), to + row * g.out_row());
      });
    });
  };
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [r = Resizer<T>(op.op()), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
    if (c[dx].numel() == 0) return;
    const Images g = r.fit(c[dx].shape(), c[dout].shape());
    const T* from = c[dout].data<T>();
    T* to = c[dx].mutable_data<T>();
    with_taps(r.columns().count(), c[dx].shape().rank() == 5, [&](auto taps, auto rows) {
      c.parallel_for(g.outer, 1, [&](int64_t begin, int64_t end) {
        std::fill(to + begin * g.in_elems(), to + end * g.in_elems(), T{0});
        for (int64_t row = begin * g.out[0] * g.out[1]; row < end * g.out[0] * g.out[1]; ++row) {
          const int64_t image = row / (g.out[0] * g.out[1]), in_image = row % (g.out[0] * g.out[1]);
          spread_row<T, taps, rows>(g, r, in_image / g.out[1], in_image % g.out[1], from + row * g.out_row(),
                                    to + image * g.in_elems());
        }
      });
    });
  };
};

// ---- on devices

template <class T> class QueuedResizer {
 public:
  QueuedResizer(const char* kernel, const ir::Op& op) : kernel_(device::kernel_of<T>(kernel)), resizer_(op) {}
  // x, y: the shapes of X and Out.
  void run(const DeviceContext& c, const Shape& x, const Shape& y, const Tensor& from, Tensor& to) {
    if (to.numel() == 0) return;
    const Images g = resizer_.fit(x, y);
    device::ResampleArgs a{};
    a.x = device::operand(from);
    a.y = device::operand(to);
    for (size_t d = 0; d < 3; ++d) a.axes[d] = axes_[d].of(c, resizer_.axis(d), g.in[d], g.out[d]);
    a.outer = g.outer;
    a.inner = g.inner;
    c.launch(kernel_, a);
  }

 private:
  ab_kernel kernel_;
  Resizer<T> resizer_;
  std::array<QueuedTaps, 3> axes_;
};

constexpr auto queued_forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [r = QueuedResizer<T>("resample", op.op()), x = op.in("X"), out = op.out("Out")](
             const DeviceContext& c) mutable { r.run(c, c[x].shape(), c[out].shape(), c[x], c[out]); };
};

constexpr auto queued_backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [r = QueuedResizer<T>("resample_grad", op.op()), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](
             const DeviceContext& c) mutable { r.run(c, c[dx].shape(), c[dout].shape(), c[dout], c[dx]); };
};

void sizes(OpDef& def) {
  def.in("X", "[N, C, H, W], [N, H, W, C], [N, C, D, H, W] or [N, D, H, W, C] float or uint8")
      .in_optional("OutSize", "[2] or [3] int32, the extents of Out: replaces scale and out_h, out_w")
      .in_optional_list("SizeTensor", "[1] int32 each, the extents of Out: precedes all others")
      .in_optional("Scale", "[1] float32: replaces scale")
      .shape_from("OutSize")
      .shape_from("SizeTensor")
      .shape_from("Scale")
      .out("Out", "X with its images resized")
      .attr<std::string>("data_layout", "NCHW",
                         "NCHW: channels are axis 1; else they are the last axis; for volumes, too",
                         one_of("data_layout", {"NCHW", "NHWC", "AnyLayout"}))
      .attr<int32_t>("out_d", 0, "depth of Out")
      .attr<int32_t>("out_h", 0, "height of Out")
      .attr<int32_t>("out_w", 0, "width of Out")
      .attr<float>("scale", 0.0f, "above 0: ratio of the extents of Out and X, replaces out_d, out_h, out_w")
      .attr<std::string>("interp_method", "bilinear", "bilinear, nearest or bicubic; trilinear for volumes",
                         one_of("interp_method", {"bilinear", "nearest", "bicubic", "trilinear"}))
      .attr<bool>("align_corners", true, "aligns the centres of the corner pixels of X and Out")
      .attr<int32_t>("align_mode", 1, "0: linear positions count from the centres of pixels, without align_corners");
}

void declare(const char* type, const char* doc, bool of_bytes) {
  OpDef& def = declare_op(type, __FILE__)
                   .doc(doc)
                   .with(sizes)
                   .traits(kRowWise)
                   .images({"X", "Out"}, nn::kBlocked)
                   .infer(infer)
                   .grad_reads({"X", "OutSize", "SizeTensor", "Scale"})
                   .grad_to({"X"})
                   .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); })
                   .device<float, double>(queued_forward);
  if (of_bytes) def.cpu<uint8_t>([](auto, const KernelArgs& op) { return forward<uint8_t>(op); });
  declare_gradient(type, __FILE__)
      .doc("X@GRAD = each element of Out@GRAD, distributed over the elements of X that it interpolates.")
      .shape_from("OutSize")
      .shape_from("SizeTensor")
      .shape_from("Scale")
      .cpu<float, double>(backward)
      .device<float, double>(queued_backward);
}

void declare_all() {
  declare("bilinear_interp", "Out = the images of X, resized: each pixel interpolates the four around its position.",
          true);
  declare("nearest_interp", "Out = the images of X, resized: each pixel is the one of X nearest to its position.",
          true);
  declare("trilinear_interp",
          "Out = the volumes of X, resized: each element interpolates the eight around its position.", true);
  declare("bicubic_interp", "Out = the images of X, resized: each pixel interpolates the sixteen around its position.",
          false);
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::vision::resize_op
