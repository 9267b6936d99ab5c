// Ops that give a tensor another shape and leave its elements where they are: reshape, squeeze, unsqueeze, flatten.
// Each comes in Fluid's two forms: the second one has an output XShape, [0, X's extents...], that holds no elements and
// from which the gradient takes its shape, so that X need not be kept.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/kernels/strided_copy.h"

namespace anabranch {
namespace {

struct Row {
  const char *type, *doc;
  Shape (*shape)(const InferContext& c, const Shape& x);
  OpDef& (*arguments)(OpDef& def);
  const char* grad_lod;  // the input whose sequences the gradient of the first form carries
  unsigned traits = 0;
};

// One extent may be -1: what is left; 0 keeps that of X.
Shape resolved(const std::vector<int64_t>& wanted, const Shape& x, const char* type) {
  Shape out;
  int left = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t extent = wanted[i];
    if (extent == 0) {
      AB_CHECK(static_cast<int>(i) < x.rank(), InvalidArgument, "{}: extent {} of shape is 0, but X is {}", type, i,
               x.str());
      extent = x[static_cast<int>(i)];
    } else if (extent == -1) {
      AB_CHECK(left < 0, InvalidArgument, "{}: extents {} and {} of shape are -1, one at most may be", type, left, i);
      left = static_cast<int>(i);
    }
    AB_CHECK(extent >= -1, InvalidArgument, "{}: extent {} of shape is {}", type, i, extent);
    out.push_back(extent);
  }
  if (!x.known()) return out;
  const int64_t n = x.numel();
  if (left >= 0) {
    out.set(left, 1);
    const int64_t rest = out.numel();
    AB_CHECK(rest > 0 ? n % rest == 0 : n == 0, ShapeMismatch, "{}: {} does not fill {} with -1 at axis {}", type,
             x.str(), out.str(), left);
    out.set(left, rest > 0 ? n / rest : 0);
  }
  AB_CHECK(out.numel() == n, ShapeMismatch, "{}: X is {} with {} elements, shape is {} with {}", type, x.str(), n,
           out.str(), out.numel());
  return out;
}

Shape reshape_shape(const InferContext& c, const Shape& x) {
  const IntArg shape = int_arg(c, c.has_in("ShapeTensor") ? "" : "Shape", "ShapeTensor", int_attr(c.op(), "shape"), -1);
  if (!shape.known) {  // the attribute, where there is one, says what the tensors will say, as far as it is known
    std::vector<int64_t> hint = int_attr(c.op(), "shape");
    if (hint.empty()) return Shape(shape.values);
    for (size_t i = 0; i < hint.size(); ++i) {
      if (hint[i] == 0 && static_cast<int>(i) < x.rank()) hint[i] = x[static_cast<int>(i)];
    }
    return Shape(hint);
  }
  AB_CHECK(!shape.values.empty(), InvalidArgument, "{}: shape is empty", c.op().type);
  return resolved(shape.values, x, c.op().type.c_str());
}

OpDef& reshape_arguments(OpDef& def) {
  return def.in_optional("Shape", "[rank] int: takes the place of the attribute")
      .in_optional_list("ShapeTensor", "[1] int each: the extents")
      .shape_from("Shape")
      .shape_from("ShapeTensor")
      .attr<std::vector<int32_t>>("shape", {}, "extents; one may be -1: what is left; 0: that of X");
}

Shape squeeze_shape(const InferContext& c, const Shape& x) {
  std::array<bool, kMaxRank> gone{};
  const auto axes = int_attr(c.op(), "axes");
  for (int64_t a : axes) {
    const int axis = normal_axis(a, x.rank(), "axes");
    gone[axis] = x[axis] == 1 || x[axis] == kUnknown;
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (axes.empty() ? x[i] != 1 : !gone[i]) out.push_back(x[i]);
  }
  return out.rank() ? out : scalar_shape();
}

Shape unsqueeze_shape(const InferContext& c, const Shape& x) {
  const bool list = c.op().type[0] == 'u' && c.has_in("AxesTensorList");
  const IntArg axes = int_arg(c, list ? "" : "AxesTensor", "AxesTensorList", int_attr(c.op(), "axes"), 0);
  Shape out = x;
  for (int64_t a : axes.values) {  // one after another: each counts in the shape that the ones before have made
    const int at = normal_axis(a, out.rank() + 1, "axes");
    Shape wider = out.slice(0, at);
    wider.push_back(1);
    for (int i = at; i < out.rank(); ++i) wider.push_back(out[i]);
    out = wider;
  }
  return axes.known ? out : Shape(std::vector<int64_t>(static_cast<size_t>(out.rank()), kUnknown));
}

OpDef& squeeze_arguments(OpDef& def) {
  return def.attr<std::vector<int32_t>>("axes", {}, "axes of extent 1 to drop; none: all of them");
}

OpDef& unsqueeze_arguments(OpDef& def) {
  return def.in_optional("AxesTensor", "[n] int: takes the place of axes")
      .in_optional_list("AxesTensorList", "[1] int each")
      .shape_from("AxesTensor")
      .shape_from("AxesTensorList")
      .attr<std::vector<int32_t>>("axes", {}, "where axes of extent 1 come in");
}

Shape flatten_shape(const InferContext& c, const Shape& x) {
  const int axis = c.attr<int32_t>("axis");
  AB_CHECK(axis >= 0 && axis <= x.rank(), InvalidArgument, "{}: axis is {}, expected 0 to {}", c.op().type, axis,
           x.rank());
  return {x.numel(0, axis), x.numel(axis, x.rank())};
}

OpDef& flatten_arguments(OpDef& def) {
  return def.attr<int32_t>("axis", 1, "axes before it become rows, the others columns");
}

constexpr Row kRows[] = {
    {.type = "reshape",
     .doc = "Out = X with another shape.",
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
     .doc = "Out = X with more axes of extent 1.",
     .shape = unsqueeze_shape,
     .arguments = unsqueeze_arguments,
     .grad_lod = "X"},
    {.type = "flatten",
     .doc = "Out = X as a matrix.",
     .shape = flatten_shape,
     .arguments = flatten_arguments,
     .grad_lod = "X"},
};

Kernel copy_kernel(const KernelArgs& op, const char* from, const char* to) {
  return [x = op.in(from), out = op.out(to)](KernelContext& c) { copy_bytes(c, c[x], &c[out]); };
}

void infer_out(InferContext& c, const Row& row) {
  const Shape& x = c.in("X").shape;
  const Shape out = row.shape(c, x);
  AB_CHECK(!c.runtime() || !out.known() || !x.known() || out.numel() == x.numel(), ShapeMismatch,
           "{}: X is {}, Out would be {}", c.op().type, x.str(), out.str());
  c.set_out("Out", out, c.in("X").dtype);
  if (out.rank() && x.rank() && out[0] == x[0]) c.share_lod("Out", "X");
}

void infer_xshape(InferContext& c) {
  const Meta& x = c.in("X");
  Shape shape = {0};
  for (int64_t extent : x.shape) shape.push_back(extent);
  c.set_out("XShape", shape, x.dtype);
  c.share_lod("XShape", "X");
}

void declare_first(const Row& row) {
  OpDef& def = declare_op(row.type, __FILE__).doc(row.doc).traits(kView | row.traits).in("X", "[...] any");
  row.arguments(def).out("Out", "X's elements").may_share("X", "Out");
  const std::string grad = std::string(row.type) + "_grad";
  def.infer([row](InferContext& c) { infer_out(c, row); });
  def.grad([grad](GradContext& g) {
    g.op(grad).in("X", g.in("X")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
  });
  def.dtype_of_input("X").cpu_any([](const KernelArgs& op) { return copy_kernel(op, "X", "Out"); });
  OpDef& back = declare_op(grad.c_str(), __FILE__).doc(std::string("X@GRAD = Out@GRAD in X's shape."));
  back.in("X", "gives the shape").in_optional("Out", "not read").in("Out@GRAD", "as Out");
  row.arguments(back).out("X@GRAD", "as X").may_share("Out@GRAD", "X@GRAD").no_grad(kNoSecondOrder);
  back.infer([lod = row.grad_lod](InferContext& c) {
    check_numel(c, "Out@GRAD", c.in("X").shape.numel());
    grad_as(c, "X@GRAD", "X", lod);
    c.out("X@GRAD").dtype = c.in("Out@GRAD").dtype;
  });
  back.cpu_any([](const KernelArgs& op) { return copy_kernel(op, "Out@GRAD", "X@GRAD"); });
}

void declare_second(const Row& row) {
  const std::string type = std::string(row.type) + "2", grad = type + "_grad";
  OpDef& def = declare_op(type.c_str(), __FILE__).doc(row.doc).traits(kView | row.traits).in("X", "[...] any");
  row.arguments(def).out("Out", "X's elements").out_intermediate("XShape", "[0, X's extents...]").may_share("X", "Out");
  def.infer([row](InferContext& c) {
    infer_out(c, row);
    infer_xshape(c);
  });
  def.grad([grad](GradContext& g) {
    g.op(grad).in("XShape", g.out("XShape")).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
  });
  def.dtype_of_input("X").cpu_any([](const KernelArgs& op) { return copy_kernel(op, "X", "Out"); });
  OpDef& back =
      declare_op(grad.c_str(), __FILE__).doc("X@GRAD = Out@GRAD in X's shape.").in("XShape", "[0, X's extents...]");
  row.arguments(back.in("Out@GRAD", "as Out")).out("X@GRAD", "as X").may_share("Out@GRAD", "X@GRAD");
  back.infer([](InferContext& c) {
    const Shape& xshape = c.in("XShape").shape;
    AB_CHECK(xshape.rank() > 1, ShapeMismatch, "{}: XShape is {}", c.op().type, xshape.str());
    const Shape x = xshape.slice(1, xshape.rank());
    check_numel(c, "Out@GRAD", x.numel());
    c.set_out("X@GRAD", x, c.in("Out@GRAD").dtype);
    c.share_lod("X@GRAD", "XShape");
  });
  back.no_grad(kNoSecondOrder).dtype_of_input("Out@GRAD");
  back.cpu_any([](const KernelArgs& op) { return copy_kernel(op, "Out@GRAD", "X@GRAD"); });
  for (OpDef* d : {&def, &back}) {
    if (type == "reshape2") ignored_flags(*d, {"use_quantizer"});
  }
}

[[maybe_unused]] const bool declared = [] {
  for (const Row& row : kRows) {
    declare_first(row);
    declare_second(row);
  }
  return true;
}();

}  // namespace
}  // namespace anabranch
