// Ops that change the shape of a tensor and leave its elements in place: reshape, squeeze, unsqueeze, flatten. Each has
// Fluid's two forms: the second one has an output XShape (xshape.h).

#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/xshape.h"

namespace anabranch::tensor::reshape_op {
namespace {

using device::OnDevice, device::OnHost;

struct Row {
  const char *type, *doc;
  Shape (*shape)(const InferContext& c, const Shape& x);
  void (*arguments)(OpDef& def);
  const char* grad_lod;  // the input whose LoD the gradient of the first form takes
  unsigned traits = 0;
};

// One extent may be -1: the rest; 0 keeps that of X.
Shape resolved(const std::vector<int64_t>& requested, const Shape& x) {
  Shape out;
  int left = -1;
  for (size_t i = 0; i < requested.size(); ++i) {
    int64_t extent = requested[i];
    if (extent == 0) {
      AB_CHECK(static_cast<int>(i) < x.rank(), InvalidArgument, "extent {} of shape must not be 0 for X {}", i,
               x.str());
      extent = x[static_cast<int>(i)];
    } else if (extent == -1) {
      AB_CHECK(left < 0, InvalidArgument, "only one extent of shape may be -1, got -1 at {} and {}", left, i);
      left = static_cast<int>(i);
    }
    AB_CHECK(extent >= -1, InvalidArgument, "extent {} of shape must be at least -1, got {}", i, extent);
    out.push_back(extent);
  }
  if (!x.known()) return out;
  const int64_t n = x.numel();
  if (left >= 0) {
    out.set(left, 1);
    const int64_t rest = out.numel();
    AB_CHECK(rest > 0 ? n % rest == 0 : n == 0, ShapeMismatch, "X {} must fill shape {} with -1 at axis {}", x.str(),
             out.str(), left);
    out.set(left, rest > 0 ? n / rest : 0);
  }
  AB_CHECK(out.numel() == n, ShapeMismatch, "X is {} with {} elements, shape {} has {}", x.str(), n, out.str(),
           out.numel());
  return out;
}

Shape reshape_shape(const InferContext& c, const Shape& x) {
  const IntArg shape = int_arg(c, c.has_in("ShapeTensor") ? "" : "Shape", "ShapeTensor", int_attr(c.op(), "shape"), -1);
  if (!shape.known) {  // if given, the attribute approximates the values of the tensors, as far as they are known
    std::vector<int64_t> hint = int_attr(c.op(), "shape");
    if (hint.empty()) return Shape(shape.values);
    for (size_t i = 0; i < hint.size(); ++i) {
      if (hint[i] == 0 && static_cast<int>(i) < x.rank()) hint[i] = x[static_cast<int>(i)];
    }
    const Shape told(hint);
    AB_CHECK(!told.known() || !x.known() || told.numel() == x.numel(), ShapeMismatch,
             "X is {} with {} elements, the attribute shape {} has {}", x.str(), x.numel(), told.str(), told.numel());
    return told;
  }
  AB_CHECK(!shape.values.empty(), InvalidArgument, "shape must not be empty");
  return resolved(shape.values, x);
}

void reshape_arguments(OpDef& def) {
  def.in_optional("Shape", "[rank] int: replaces the attribute")
      .in_optional_list("ShapeTensor", "[1] int each: the extents")
      .shape_from("Shape")
      .shape_from("ShapeTensor")
      .attr<std::vector<int32_t>>("shape", {}, "extents; one may be -1: the rest; 0: that of X");
}

Shape squeeze_shape(const InferContext& c, const Shape& x) {
  std::array<bool, kMaxRank> gone{};
  const auto axes = int_attr(c.op(), "axes");
  for (int64_t a : axes) {
    const int axis = normal_axis(a, x.rank(), "axes");
    AB_CHECK(x[axis] == 1 || x[axis] == kUnknown, ShapeMismatch, "axis {} of X must have one element, got {}", axis,
             x.str());
    gone[axis] = true;
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (axes.empty() ? x[i] != 1 : !gone[i]) out.push_back(x[i]);
  }
  return out.rank() ? out : scalar_shape();
}

Shape unsqueeze_shape(const InferContext& c, const Shape& x) {
  const bool list = c.has_in("AxesTensorList");
  const IntArg axes = int_arg(c, list ? "" : "AxesTensor", "AxesTensorList", int_attr(c.op(), "axes"), 0);
  Shape out = x;
  for (int64_t a : axes.values) {  // one after another: each is an axis of the shape after the previous ones
    const int at = normal_axis(a, out.rank() + 1, "axes");
    Shape wider = out.slice(0, at);
    wider.push_back(1);
    for (int i = at; i < out.rank(); ++i) wider.push_back(out[i]);
    out = wider;
  }
  return axes.known ? out : Shape(std::vector<int64_t>(static_cast<size_t>(out.rank()), kUnknown));
}

void squeeze_arguments(OpDef& def) {
  def.attr<std::vector<int32_t>>("axes", {}, "axes of extent 1 to drop; empty: all of them");
}

void unsqueeze_arguments(OpDef& def) {
  def.in_optional("AxesTensor", "[n] int: replaces axes")
      .in_optional_list("AxesTensorList", "[1] int each")
      .shape_from("AxesTensor")
      .shape_from("AxesTensorList")
      .attr<std::vector<int32_t>>("axes", {}, "positions of the new axes of extent 1");
}

Shape flatten_shape(const InferContext& c, const Shape& x) {
  const int axis = c.attr<int32_t>("axis");
  AB_CHECK(axis >= 0 && axis <= x.rank(), InvalidArgument, "axis must be 0 to {}, got {}", x.rank(), axis);
  return {x.numel(0, axis), x.numel(axis, x.rank())};
}

void flatten_arguments(OpDef& def) {
  def.attr<int32_t>("axis", 1, "first axis of the columns; axes before it form the rows");
}

constexpr Row kRows[] = {
    {.type = "reshape",
     .doc = "Out = X with a different shape.",
     .shape = reshape_shape,
     .arguments = reshape_arguments,
     .grad_lod = "",
     .traits = kLinear},
    {.type = "squeeze",
     .doc = "Out = X without axes of extent 1.",
     .shape = squeeze_shape,
     .arguments = squeeze_arguments,
     .grad_lod = "X"},
    {.type = "unsqueeze",
     .doc = "Out = X with additional axes of extent 1.",
     .shape = unsqueeze_shape,
     .arguments = unsqueeze_arguments,
     .grad_lod = "X"},
    {.type = "flatten",
     .doc = "Out = X as a matrix.",
     .shape = flatten_shape,
     .arguments = flatten_arguments,
     .grad_lod = "X"},
};

template <class On> KernelFactory copy_kernel(const char* from, const char* to) {
  return [=](const KernelArgs& op) -> Kernel {
    return [on = On(op.dtype()), x = op.in(from), out = op.out(to)](KernelContext& c) { on.whole(c, c[x], &c[out]); };
  };
}

void infer_out(InferContext& c, const Row& row) {
  const Shape& x = c.in("X").shape;
  const Shape out = row.shape(c, x);
  AB_CHECK(!c.runtime() || !out.known() || !x.known() || out.numel() == x.numel(), ShapeMismatch,
           "Out must have the elements of X {}, got {}", x.str(), out.str());
  c.set_out("Out", out, c.in("X").dtype);
  if (out.rank() && x.rank() && out[0] == x[0]) c.share_lod("Out", "X");
}

void infer_gradient_of(InferContext& c, const Shape& x) {
  check_numel(c, "Out@GRAD", x.numel());
  c.set_out("X@GRAD", x, c.in("Out@GRAD").dtype);
}

void declare_forward(OpDef& def, const Row& row) {
  def.doc(row.doc)
      .traits(kView | kKeepsElements | row.traits)
      .in("X", "[...] any")
      .out("Out", "the elements of X")
      .may_share("X", "Out");
  def.with(row.arguments).grad_to({"X"});
  def.dtype_of_input("X").cpu_any(copy_kernel<OnHost>("X", "Out")).device_any(copy_kernel<OnDevice>("X", "Out"));
}

OpDef& declare_backward(const std::string& type) {
  return declare_gradient(type.c_str(), __FILE__)
      .doc("X@GRAD = Out@GRAD in the shape of X.")
      .grad(second_order::reshaped)
      .traits(kKeepsElements)
      .may_share("Out@GRAD", "X@GRAD")
      .dtype_of_input("Out@GRAD")
      .cpu_any(copy_kernel<OnHost>("Out@GRAD", "X@GRAD"))
      .device_any(copy_kernel<OnDevice>("Out@GRAD", "X@GRAD"));
}

void declare_first(const Row& row) {
  OpDef& def = declare_op(row.type, __FILE__);
  declare_forward(def, row);
  def.infer([row](InferContext& c) { infer_out(c, row); }).grad_reads({"X"});
  OpDef& back = declare_backward(row.type).in_optional("Out", "ignored");
  back.infer([lod = row.grad_lod](InferContext& c) {
    infer_gradient_of(c, c.in("X").shape);
    if (*lod) share_fitting_lod(c, "X@GRAD", lod);
  });
}

void declare_second(const Row& row) {
  const std::string type = std::string(row.type) + "2";
  OpDef& def = declare_op(type.c_str(), __FILE__);
  declare_forward(def, row);
  if (type == "reshape2") def.ignores({"use_quantizer"});
  def.out_intermediate("XShape", "[0, X's extents...]").grad_reads({}, {"XShape"});
  def.infer([row](InferContext& c) {
    infer_out(c, row);
    set_xshape(c);
  });
  declare_backward(type).infer([](InferContext& c) {
    infer_gradient_of(c, shape_of_x(c));
    c.share_lod("X@GRAD", "XShape");
  });
}

void declare_all() {
  for (const Row& row : kRows) {
    declare_first(row);
    declare_second(row);
  }
}

AB_OPS(declare_all);

}  // namespace
}  // namespace anabranch::tensor::reshape_op
