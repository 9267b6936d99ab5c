// Out = X with its axes in another order, in Fluid's two forms (see reshape.cc about XShape), and reverse.
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/kernels/strided_copy.h"

namespace anabranch {
namespace {

std::vector<int> order_of(const ir::Op& op, int rank) {
  std::vector<int> order;
  std::array<bool, kMaxRank> seen{};
  const auto axes = int_attr(op, "axis");
  AB_CHECK(static_cast<int>(axes.size()) == rank, InvalidArgument, "{}: axis has {} entries, X has {} axes", op.type,
           axes.size(), rank);
  for (int64_t a : axes) {
    order.push_back(normal_axis(a, rank, "axis"));
    AB_CHECK(!seen[order.back()], InvalidArgument, "{}: axis names {} twice", op.type, a);
    seen[order.back()] = true;
  }
  return order;
}

Shape permuted(const Shape& x, const std::vector<int>& order) {
  Shape out;
  for (int a : order) out.push_back(x[a]);
  return out;
}

// Axis i of the target is axis order[i] of the source; `back` swaps the roles.
void transpose(const KernelContext& c, const std::vector<int>& order, const Tensor& from, Tensor* to, bool back) {
  const Shape& whole = back ? to->shape() : from.shape();
  const auto inner = dense_strides(whole), outer = dense_strides(permuted(whole, order));
  NdLoop<2> loop;
  if (!back) {
    for (size_t i = 0; i < order.size(); ++i) loop.add_axis(whole[order[i]], {outer[i], inner[order[i]]});
  } else {
    std::array<int, kMaxRank> place{};
    for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
    for (int a = 0; a < whole.rank(); ++a) loop.add_axis(whole[a], {inner[a], outer[place[a]]});
  }
  strided_copy(c, loop, from, 0, to, 0);
}

OpDef& with_attrs(OpDef& def) {
  def.required_attr("axis", AttrType::kInts, "axis i of Out is axis axis[i] of X");
  def.attr<std::string>("data_format", "AnyLayout", "accepted, without effect");
  return ignored_flags(def, {"use_mkldnn", "use_quantizer"});
}

Kernel transpose_kernel(const KernelArgs& op, const char* from, const char* to, bool back) {
  const int rank = static_cast<int>(op.attr<std::vector<int32_t>>("axis").size());
  return [order = order_of(op.op(), rank), x = op.in(from), out = op.out(to), back](KernelContext& c) {
    transpose(c, order, c[x], &c[out], back);
  };
}

void infer_back(InferContext& c, const Shape& x) {
  const Shape want = permuted(x, order_of(c.op(), x.rank())), &got = c.in("Out@GRAD").shape;
  AB_CHECK(compatible(want, got), ShapeMismatch, "{}: Out@GRAD is {}, expected {}", c.op().type, got.str(), want.str());
  c.set_out("X@GRAD", x, c.in("Out@GRAD").dtype);
}

void declare(const char* type, bool second) {
  OpDef& def = with_attrs(declare_op(type, __FILE__)).doc("Out = X with its axes in another order.");
  def.in("X", "[...] any").out("Out", "[X's extents in the new order]");
  if (second) def.out_intermediate("XShape", "[0, X's extents...]");
  def.infer([second](InferContext& c) {
    const Meta& x = c.in("X");
    const auto order = order_of(c.op(), x.shape.rank());
    c.set_out("Out", permuted(x.shape, order), x.dtype);
    if (!second) return;
    Shape shape = {0};
    for (int64_t extent : x.shape) shape.push_back(extent);
    c.set_out("XShape", shape, x.dtype);
    c.share_lod("XShape", "X");
  });
  const std::string grad = std::string(type) + "_grad";
  def.grad([=](GradContext& g) {
    GradOp op = g.op(grad).in("Out@GRAD", g.dout("Out")).out("X@GRAD", g.din("X"));
    second ? op.in("XShape", g.out("XShape")) : op.in("X", g.in("X"));
  });
  def.cpu_any([](const KernelArgs& op) { return transpose_kernel(op, "X", "Out", false); });
  OpDef& back = with_attrs(declare_op(grad.c_str(), __FILE__)).doc("X@GRAD = Out@GRAD with its axes in X's order.");
  if (second)
    back.in("XShape", "[0, X's extents...]");
  else
    back.in("X", "gives the shape");
  back.in("Out@GRAD", "as Out").out("X@GRAD", "as X").no_grad(kNoSecondOrder).dtype_of_input("Out@GRAD");
  back.infer([second](InferContext& c) {
    const Shape& s = c.in(second ? "XShape" : "X").shape;
    AB_CHECK(!second || s.rank() > 1, ShapeMismatch, "{}: XShape is {}", c.op().type, s.str());
    infer_back(c, second ? s.slice(1, s.rank()) : s);
    if (second) c.share_lod("X@GRAD", "XShape");
  });
  back.cpu_any([](const KernelArgs& op) { return transpose_kernel(op, "Out@GRAD", "X@GRAD", true); });
}

[[maybe_unused]] const bool declared = (declare("transpose", false), declare("transpose2", true), true);

}  // namespace

AB_OP(reverse)
    .doc("Out = X with the order of elements along some axes reversed.")
    .in("X", "[...] any")
    .out("Out", "[...] as X")
    .required_attr("axis", AttrType::kInts, "axes to reverse")
    .infer([](InferContext& c) {
      for (int64_t a : int_attr(c.op(), "axis")) normal_axis(a, c.in("X").shape.rank(), "axis");
      c.same_shape("Out", "X");
    })
    .grad([](GradContext& g) { g.op("reverse").in("X", g.dout("Out")).out("Out", g.din("X")); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [axes = int_attr(op.op(), "axis"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Shape& shape = c[x].shape();
        auto from = dense_strides(shape);
        const auto to = from;
        int64_t offset = 0;
        std::array<bool, kMaxRank> turned{};
        for (int64_t a : axes) turned[normal_axis(a, shape.rank(), "axis")] = true;
        NdLoop<2> loop;
        for (int i = 0; i < shape.rank(); ++i) {
          if (turned[i]) offset += (shape[i] - 1) * from[i], from[i] = -from[i];
          loop.add_axis(shape[i], {to[i], from[i]});
        }
        strided_copy(c, loop, c[x], offset, &c[out], 0);
      };
    });

}  // namespace anabranch
