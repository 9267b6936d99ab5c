// Images and volumes of another size: bilinear_interp, nearest_interp, bicubic_interp, trilinear_interp. The attribute
// interp_method decides what an op of any of these types does, as in 1.8.5.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/kernels/flat_loop.h"
#include "ops/nn/window.h"
#include "ops/vision/resample_on_device.h"

namespace anabranch::vision {
namespace {

using nn::Extents;

constexpr const char* kSizes[] = {"out_d", "out_h", "out_w"};

bool channels_last(const ir::Op& op) { return op.attr<std::string>("data_layout") == "NHWC"; }

Method method_of(const ir::Op& op, int rank) {
  const auto& name = op.attr<std::string>("interp_method");
  AB_CHECK(rank == 5 ? name == "trilinear" : name == "bilinear" || name == "nearest" || name == "bicubic",
           InvalidArgument, "interp_method must be {} for X of {} axes, got {}",
           rank == 5 ? "trilinear" : "bilinear, nearest or bicubic", rank, name);
  return name == "nearest" ? Method::kNearest : name == "bicubic" ? Method::kCubic : Method::kLinear;
}

// The extent that a scale makes of an extent; 0: none that fits into 32 bits.
int64_t scaled(int64_t extent, float scale) {
  const float to = static_cast<float>(extent) * scale;
  return to < static_cast<float>(std::numeric_limits<int32_t>::max()) ? static_cast<int64_t>(to) : 0;
}

// What the inputs and attributes say of the extents, in the order of precedence: SizeTensor, OutSize, Scale, scale,
// attributes. While the program is built those of the attributes stand for values that are not known yet.
struct Wanted {
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

Wanted wanted(const InferContext& c, int axes) {
  AB_CHECK(!c.has_in("SizeTensor") || c.n_in("SizeTensor") == axes, InvalidArgument,
           "SizeTensor must be {} numbers, got {}", axes, c.n_in("SizeTensor"));
  Wanted w;
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
  check_tensor(c, "X");
  check_rank(c, "X", 4, 5);
  const Shape& x = c.in("X").shape;
  const int axes = x.rank() - 2;
  method_of(c.op(), x.rank());
  const bool last = channels_last(c.op());
  const Extents in = nn::extents_of(x, nn::first_axis(last), axes);
  const Wanted w = wanted(c, axes);
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

// Images as [outer, depth, height, width, inner].
struct Images {
  int64_t outer, inner;
  Extents in, out;
  Images(const Shape& x, const Shape& y, bool last)
      : outer(last ? x[0] : x[0] * x[1]),
        inner(last ? x[x.rank() - 1] : 1),
        in(nn::extents_of(x, nn::first_axis(last), x.rank() - 2)),
        out(nn::extents_of(y, nn::first_axis(last), x.rank() - 2)) {}
  int64_t in_elems() const { return nn::volume(in) * inner; }
  int64_t out_row() const { return out[2] * inner; }
};

// Of a type that holds fractions: a float64 has weights of its own width, all else is added up in float32.
template <class T> using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T> T rounded(Sum<T> v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(
        std::clamp(v, Sum<T>(std::numeric_limits<T>::lowest()), Sum<T>(std::numeric_limits<T>::max())));
  } else {
    return v;
  }
}

template <class W> class Resizer {
 public:
  explicit Resizer(const ir::Op& op) : op_(op), last_(channels_last(op)) {}

  Images fit(const Shape& x, const Shape& y) {
    const Images g(x, y, last_);
    const Sampling how{.method = method_of(op_, x.rank()),
                       .align_corners = op_.attr<bool>("align_corners"),
                       .half_pixels = op_.attr<int32_t>("align_mode") == 0};
    if (x.rank() == 4) taps_[0].fit_whole(1);
    for (auto d = static_cast<size_t>(5 - x.rank()); d < 3; ++d) taps_[d].fit(how, g.in[d], g.out[d]);
    return g;
  }

  // Where the input rows begin that row (z, y) of an output image is made of, and their weights.
  struct Rows {
    std::array<int64_t, 4> begin;
    std::array<W, 4> weight;
  };
  Rows rows(const Images& g, int64_t z, int64_t y) const {
    Rows r;
    size_t at = 0;
    for (int i = 0; i < taps_[0].count(); ++i) {
      for (int j = 0; j < taps_[1].count(); ++j, ++at) {
        r.begin[at] = (taps_[0].from(z)[i] * g.in[1] + taps_[1].from(y)[j]) * g.in[2] * g.inner;
        r.weight[at] = taps_[0].weight(z)[i] * taps_[1].weight(y)[j];
      }
    }
    return r;
  }
  const Taps<W>& columns() const { return taps_[2]; }
  const Taps<W>& axis(size_t d) const { return taps_[d]; }

 private:
  ir::Op op_;
  bool last_;
  std::array<Taps<W>, 3> taps_;
};

template <class T, class W, int kTaps, int kRows>
void make_row(const Images& g, const Resizer<W>& r, int64_t z, int64_t y, const T* x, T* out) {
  const auto rows = r.rows(g, z, y);
  for (int64_t k = 0; k < g.out[2]; ++k) {
    const int64_t* from = r.columns().from(k);
    const W* weight = r.columns().weight(k);
    for (int64_t i = 0; i < g.inner; ++i) {
      W sum = 0;
      for (int t = 0; t < kTaps; ++t) {
        for (size_t at = 0; at < kRows; ++at) {
          sum += static_cast<W>(x[rows.begin[at] + from[t] * g.inner + i]) * rows.weight[at] * weight[t];
        }
      }
      out[k * g.inner + i] = rounded<T>(sum);
    }
  }
}

template <class T, int kTaps, int kRows>
void spread_row(const Images& g, const Resizer<T>& r, int64_t z, int64_t y, const T* dout, T* dx) {
  const auto rows = r.rows(g, z, y);
  for (int64_t k = 0; k < g.out[2]; ++k) {
    const int64_t* from = r.columns().from(k);
    const T* weight = r.columns().weight(k);
    for (int64_t i = 0; i < g.inner; ++i) {
      for (int t = 0; t < kTaps; ++t) {
        for (size_t at = 0; at < kRows; ++at) {
          dx[rows.begin[at] + from[t] * g.inner + i] += dout[k * g.inner + i] * rows.weight[at] * weight[t];
        }
      }
    }
  }
}

// fn(taps, rows): how many columns and rows an output is made of, as constants. Linear volumes have two rows of each of
// two planes.
template <class Fn> void with_taps(int taps, bool volumes, Fn&& fn) {
  using std::integral_constant;
  if (taps == 1) return fn(integral_constant<int, 1>{}, integral_constant<int, 1>{});
  if (taps == 2 && volumes) return fn(integral_constant<int, 2>{}, integral_constant<int, 4>{});
  if (taps == 2) return fn(integral_constant<int, 2>{}, integral_constant<int, 2>{});
  fn(integral_constant<int, 4>{}, integral_constant<int, 4>{});
}

int64_t row_grain(const Images& g, int taps) { return kCheapGrain / (g.out_row() * taps * taps + 1) + 1; }

template <class T> Kernel forward(const KernelArgs& op) {
  using W = Sum<T>;
  return [r = Resizer<W>(op.op()), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
    if (c[out].numel() == 0) return;
    const Images g = r.fit(c[x].shape(), c[out].shape());
    const T* from = c[x].data<T>();
    T* to = c[out].template mutable_data<T>();
    const int64_t per_image = g.out[0] * g.out[1];
    with_taps(r.columns().count(), c[x].shape().rank() == 5, [&](auto taps, auto rows) {
      c.parallel_for(g.outer * per_image, row_grain(g, taps), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t in_image = row % per_image;
          make_row<T, W, taps, rows>(g, r, in_image / g.out[1], in_image % g.out[1],
                                     from + row / per_image * g.in_elems(), to + row * g.out_row());
        }
      });
    });
  };
}

template <class T> Kernel backward(const KernelArgs& op) {
  return [r = Resizer<T>(op.op()), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) mutable {
    if (c[dx].numel() == 0) return;
    const Images g = r.fit(c[dx].shape(), c[dout].shape());
    const T* from = c[dout].data<T>();
    T* to = c[dx].template mutable_data<T>();
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
}

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

template <class T> Kernel queued_forward(const KernelArgs& op) {
  return [r = QueuedResizer<T>("resample", op.op()), x = op.in("X"), out = op.out("Out")](KernelContext& c) mutable {
    r.run(DeviceContext::of(c), c[x].shape(), c[out].shape(), c[x], c[out]);
  };
}

template <class T> Kernel queued_backward(const KernelArgs& op) {
  return [r = QueuedResizer<T>("resample_grad", op.op()), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](
             KernelContext& c) mutable { r.run(DeviceContext::of(c), c[dx].shape(), c[dout].shape(), c[dout], c[dx]); };
}

void sizes(OpDef& def) {
  def.in("X", "[N, C, H, W], [N, H, W, C], [N, C, D, H, W] or [N, D, H, W, C] float or uint8")
      .in_optional("OutSize", "[2] or [3] int32, the extents of Out: takes the place of scale and out_h, out_w")
      .in_optional_list("SizeTensor", "[1] int32 each, the extents of Out: goes before all else")
      .in_optional("Scale", "[1] float32: takes the place of scale")
      .shape_from("OutSize")
      .shape_from("SizeTensor")
      .shape_from("Scale")
      .out("Out", "X with other extents of its images")
      .attr<std::string>("data_layout", "NCHW", "NCHW or NHWC, of volumes too",
                         one_of("data_layout", {"NCHW", "NHWC", "AnyLayout"}))
      .attr<int32_t>("out_d", 0, "depth of Out")
      .attr<int32_t>("out_h", 0, "height of Out")
      .attr<int32_t>("out_w", 0, "width of Out")
      .attr<float>("scale", 0.0f, "above 0: extents of Out by those of X, in the place of out_d, out_h, out_w")
      .attr<std::string>("interp_method", "bilinear", "bilinear, nearest or bicubic; trilinear, of volumes",
                         one_of("interp_method", {"bilinear", "nearest", "bicubic", "trilinear"}))
      .attr<bool>("align_corners", true, "the corners of X and Out are the middles of their outermost pixels")
      .attr<int32_t>("align_mode", 1, "0: linear positions count from the middles of pixels, without align_corners");
}

void declare(const char* type, const char* doc, bool of_bytes) {
  OpDef& def =
      declare_op(type, __FILE__)
          .doc(doc)
          .with(sizes)
          .traits(kRowWise)
          .infer(infer)
          .grad_reads({"X", "OutSize", "SizeTensor", "Scale"})
          .grad_to({"X"})
          .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); })
          .device<float, double>(
              [](auto tag, const KernelArgs& op) { return queued_forward<typename decltype(tag)::type>(op); });
  if (of_bytes) def.cpu<uint8_t>([](auto, const KernelArgs& op) { return forward<uint8_t>(op); });
  declare_gradient(type, __FILE__)
      .doc("X@GRAD = each element of Out@GRAD, shared out to the elements of X that made it.")
      .shape_from("OutSize")
      .shape_from("SizeTensor")
      .shape_from("Scale")
      .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); })
      .device<float, double>(
          [](auto tag, const KernelArgs& op) { return queued_backward<typename decltype(tag)::type>(op); });
}

void declare_all() {
  declare("bilinear_interp", "Images of another size: each pixel made of the four around its place.", true);
  declare("nearest_interp", "Images of another size: each pixel that of X nearest to its place.", true);
  declare("trilinear_interp", "Volumes of another size: each element made of the eight around its place.", true);
  declare("bicubic_interp", "Images of another size: each pixel made of the sixteen around its place.", false);
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::vision
