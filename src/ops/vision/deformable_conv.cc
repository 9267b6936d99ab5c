// Deformable convolutions: each tap of a window is moved by an offset and interpolates between pixels.
#include <fmt/ranges.h>

#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/gemm.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/window_count.h"
#include "ops/vision/deformed.h"

namespace anabranch::vision::deformable_conv_op {
namespace {

using Ints = std::vector<int32_t>;

const Ints& pair_of(const ir::Op& op, const char* name, int32_t low) {
  const auto& v = op.attr<Ints>(name);
  AB_CHECK(v.size() == 2 && v[0] >= low && v[1] >= low, InvalidArgument,
           "{} must be 2 numbers of at least {}, got [{}]", name, low, fmt::join(v, ", "));
  return v;
}

int64_t positive(const ir::Op& op, const char* name) {
  const int64_t n = op.attr<int32_t>(name);
  AB_CHECK(n > 0, InvalidArgument, "{} must be above 0, got {}", name, n);
  return n;
}

Deformed read_windows(const ir::Op& op, const Shape& x, const Shape& filter) {
  const Ints &stride = pair_of(op, "strides", 1), &padding = pair_of(op, "paddings", 0),
             &dilation = pair_of(op, "dilations", 1);
  Deformed d;
  d.groups = positive(op, "groups");
  d.parts = positive(op, "deformable_groups");
  positive(op, "im2col_step");
  d.channels = x[1];
  d.made = filter[0];
  for (size_t k : {size_t{0}, size_t{1}}) {
    const int axis = static_cast<int>(k) + 2;
    d.kernel[k] = filter[axis];
    d.stride[k] = stride[k];
    d.padding[k] = padding[k];
    d.dilation[k] = dilation[k];
    d.in[k] = x[axis];
    if (x[axis] < 0) continue;
    const int64_t span = product(d.kernel[k] - 1, d.dilation[k]) + 1;
    d.out[k] = window_count(span, d.stride[k], x[axis], d.padding[k], d.padding[k]);
  }
  return d;
}

void check_filter(const Shape& x, const Shape& filter, const Deformed& d) {
  AB_CHECK(x[1] < 0 || x[1] == product(filter[1], d.groups), ShapeMismatch,
           "Input must have {} channels for Filter {} in {} groups, got {}", filter[1] * d.groups, filter.str(),
           d.groups, x.str());
  AB_CHECK(filter[0] % d.groups == 0, InvalidArgument, "groups must divide the {} output channels, got {}", filter[0],
           d.groups);
  AB_CHECK(x[1] < 0 || x[1] % d.parts == 0, InvalidArgument, "deformable_groups must divide the {} channels, got {}",
           x[1], d.parts);
}

void infer(InferContext& c) {
  check_rank(c, "Input", 4, 4);
  check_rank(c, "Filter", 4, 4);
  const Shape &x = c.in("Input").shape, &filter = c.in("Filter").shape;
  AB_CHECK(filter.known() && filter.numel() > 0, InvalidArgument, "Filter must have known extents above 0, got {}",
           filter.str());
  const Deformed d = read_windows(c.op(), x, filter);
  check_filter(x, filter, d);
  const int64_t taps = product(d.parts, d.taps());
  check_rank(c, "Offset", 4, 4);
  check_shape(c, "Offset", {x[0], product(taps, 2), d.out[0], d.out[1]});
  const bool masked = c.op().type.find("_v1") == std::string::npos;
  if (masked) {
    check_rank(c, "Mask", 4, 4);
    check_shape(c, "Mask", {x[0], taps, d.out[0], d.out[1]});
  }
  for (const char* slot : {"Offset", "Filter", "Mask"}) {
    if (c.runtime() && (masked || std::string_view(slot) != "Mask")) check_same_dtype(c, slot, "Input");
  }
  c.set_out("Output", {x[0], filter[0], d.out[0], d.out[1]}, c.in("Input").dtype);
}

// Handles of the inputs, and state kept from step to step.
template <class T> struct Inputs {
  In x, offset, mask, filter;
  std::shared_ptr<const ir::Op> op;
  Tensor columns;  // of one image: [channels * taps, places]
  explicit Inputs(const KernelArgs& args)
      : x(args.in("Input")),
        offset(args.in("Offset")),
        filter(args.in("Filter")),
        op(std::make_shared<const ir::Op>(args.op())) {
    if (op->type.find("_v1") == std::string::npos) mask = args.in("Mask");
  }
  Deformed begin(const KernelContext& c) {
    const Deformed d = read_windows(*op, c[x].shape(), c[filter].shape());
    columns.resize(Shape{d.channels * d.taps(), d.places()}, dtype_of<T>);
    return d;
  }
  Places<T> places(const KernelContext& c, const Deformed& d, int64_t n) const {
    return {d, c[offset].data<T>() + n * c[offset].row_elems(),
            mask ? c[mask].data<T>() + n * c[mask].row_elems() : nullptr};
  }
};

template <class T> Kernel forward(const KernelArgs& op) {
  return [in = Inputs<T>(op), gemm = std::make_shared<Gemm<T>>(), out = op.out("Output")](KernelContext& c) mutable {
    const Deformed d = in.begin(c);
    const T *x = c[in.x].template data<T>(), *filter = c[in.filter].template data<T>();
    T *columns = in.columns.template mutable_data<T>(), *to = c[out].template mutable_data<T>();
    for (int64_t n = 0; n < c[out].rows(); ++n) {
      read_columns(c, in.places(c, d, n), x + n * d.channels * d.in_plane(), columns);
      gemm->run(c, d.forward(), filter, columns, to + n * d.made * d.places());
    }
  };
}

// The gradient of the filters, a sum over images.
template <class T> class FilterGrad {
 public:
  void add(const KernelContext& c, const Deformed& d, const T* dout, const T* columns, int64_t n, T* to) {
    const int64_t elems = d.made * d.depth();
    T* made = to;
    if (n > 0) {
      image_.resize(Shape{elems}, dtype_of<T>);
      made = image_.mutable_data<T>();
    }
    gemm_.run(c, d.to_filters(), dout, columns, made);
    for (int64_t i = 0; n > 0 && i < elems; ++i) to[i] += made[i];
  }

 private:
  Gemm<T> gemm_;
  Tensor image_;
};

template <class T> struct Gradient {
  Inputs<T> in;
  In dout;
  Out dx, doffset, dmask, dfilter;
  Gemm<T> gemm;
  FilterGrad<T> filters;
  Tensor dcolumns;

  explicit Gradient(const KernelArgs& op)
      : in(op),
        dout(op.in("Output@GRAD")),
        dx(op.out("Input@GRAD")),
        doffset(op.out("Offset@GRAD")),
        dfilter(op.out("Filter@GRAD")) {
    if (in.mask) dmask = op.out("Mask@GRAD");
  }

  void run(KernelContext& c) {
    const Deformed d = in.begin(c);
    T *to_x = zeroed<T>(c, dx), *to_offset = needed<T>(c, doffset), *to_mask = needed<T>(c, dmask);
    T* to_filter = zeroed<T>(c, dfilter);
    dcolumns.resize(in.columns.shape(), dtype_of<T>);
    T *columns = in.columns.template mutable_data<T>(), *dcolumn = dcolumns.template mutable_data<T>();
    for (int64_t n = 0; n < c[dout].rows(); ++n) {
      const Places<T> places = in.places(c, d, n);
      const T* x = c[in.x].template data<T>() + n * d.channels * d.in_plane();
      const T* grad = c[dout].data<T>() + n * d.made * d.places();
      if (to_filter) {
        read_columns(c, places, x, columns);
        filters.add(c, d, grad, columns, n, to_filter);
      }
      if (!to_x && !to_offset && !to_mask) continue;
      gemm.run(c, d.to_columns(), c[in.filter].template data<T>(), grad, dcolumn);
      if (to_x) share_columns(c, places, dcolumn, to_x + n * d.channels * d.in_plane());
      const int64_t taps = d.parts * d.taps() * d.places();
      if (to_offset || to_mask) {
        move_columns(c, places, x, dcolumn, to_offset ? to_offset + n * taps * 2 : nullptr,
                     to_mask ? to_mask + n * taps : nullptr);
      }
    }
  }
};

void attributes(OpDef& def) {
  def.attr<Ints>("strides", {1, 1}, "strides of the window: down, to the right")
      .attr<Ints>("paddings", {0, 0}, "padding of rows and of columns")
      .attr<Ints>("dilations", {1, 1}, "distance between taps in pixels")
      .attr<int32_t>("groups", 1, "number of groups of channels with separate filters")
      .attr<int32_t>("deformable_groups", 1, "number of groups of channels with separate offsets")
      .attr<int32_t>("im2col_step", 64, "ignored: number of images that Fluid processes at once");
}

void declare_conv(const char* type, bool masked) {
  OpDef& def = declare_op(type, __FILE__);
  def.doc(fmt::format("Output[n, o, p] = the sum over channels c and taps k of Filter[o, c, k] times Input[n, c] at "
                      "Output[n, o, p] = the sum over channels c and taps k of Filter[o, c, k] times Input[n, c] at "
                      "the position of tap k of the window at p, moved by Offset (down, to the right){}, interpolating "
                      "the four pixels around it; 0 outside.",
                      masked ? ", times Mask" : ""))
      .source(masked ? "Zhu et al., Deformable ConvNets v2, CVPR 2019, arXiv:1811.11168"
                     : "Dai et al., Deformable convolutional networks, ICCV 2017, arXiv:1703.06211")
      .in("Input", "[N, C, H, W] float")
      .in("Offset", "[N, deformable_groups kh kw 2, Ho, Wo] like Input: per tap: pixels down, then to the right");
  if (masked) def.in("Mask", "[N, deformable_groups kh kw, Ho, Wo] like Input: weight of each tap");
  def.in("Filter", "[M, C / groups, kh, kw] like Input")
      .out("Output", "[N, M, Ho, Wo], Ho = (H + 2 padding - dilation (kh - 1) - 1) / stride + 1")
      .with(attributes)
      .infer(infer)
      .dtype_of_input("Input")
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); });
  if (masked) {
    def.grad_reads({"Input", "Offset", "Mask", "Filter"});
  } else {
    def.grad_reads({"Input", "Offset", "Filter"});
  }
  declare_gradient(type, __FILE__)
      .doc(
          "Input@GRAD = the gradients of all taps that read a pixel; Offset@GRAD = the change of the taps' values "
          "downwards and to the right; Filter@GRAD, and Mask@GRAD if given, the other factor times Output@GRAD.")
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
        return [grad = std::make_shared<Gradient<T>>(op)](KernelContext& c) { grad->run(c); };
      });
}

void declare() {
  declare_conv("deformable_conv", true);
  declare_conv("deformable_conv_v1", false);
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::vision::deformable_conv_op
