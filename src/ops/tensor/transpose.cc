// Out = X with permuted axes, in Fluid's two forms (see xshape.h), and reverse.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/tensor/xshape.h"

namespace anabranch::tensor::transpose_op {
namespace {

using device::OnDevice, device::OnHost;

std::vector<int> order_of(const ir::Op& op, int rank) {
  std::vector<int> order;
  std::array<bool, kMaxRank> seen{};
  const auto axes = int_attr(op, "axis");
  AB_CHECK(static_cast<int>(axes.size()) == rank, InvalidArgument,
           "axis must have an entry for each of the {} axes of X, got {}", rank, axes.size());
  for (int64_t a : axes) {
    order.push_back(normal_axis(a, rank, "axis"));
    AB_CHECK(!seen[order.back()], InvalidArgument, "axis must name each axis once, got {} twice", a);
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
template <class On>
void transpose(const On& on, const KernelContext& c, const std::vector<int>& order, const Tensor& from, Tensor* to,
               bool back) {
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
  on.strided(c, loop, from, 0, to, 0);
}

template <class On> Kernel transpose_kernel(const KernelArgs& op, const char* from, const char* to, bool back) {
  const int rank = static_cast<int>(op.attr<std::vector<int32_t>>("axis").size());
  return [on = On(op.dtype()), order = order_of(op.op(), rank), x = op.in(from), out = op.out(to),
          back](KernelContext& c) { transpose(on, c, order, c[x], &c[out], back); };
}

void infer_forward(InferContext& c) {
  const Meta& x = c.in("X");
  c.set_out("Out", permuted(x.shape, order_of(c.op(), x.shape.rank())), x.dtype);
}

void infer_second_gradient(InferContext& c) {
  const Shape x = shape_of_x(c);
  check_shape(c, "Out@GRAD", permuted(x, order_of(c.op(), x.rank())));
  c.set_out("X@GRAD", x, c.in("Out@GRAD").dtype);
  c.share_lod("X@GRAD", "XShape");
}

void attrs(OpDef& def) {
  def.required_attr("axis", AttrType::kInts, "axis i of Out is axis axis[i] of X");
  def.ignores({"data_format", "use_mkldnn", "use_quantizer"});
}

template <class On> Kernel transposed(const KernelArgs& op) { return transpose_kernel<On>(op, "X", "Out", false); }
template <class On> Kernel transposed_back(const KernelArgs& op) {
  return transpose_kernel<On>(op, "Out@GRAD", "X@GRAD", true);
}

AB_OP(transpose)
    .doc("Out = X with its axes permuted.")
    .in("X", "[...] any")
    .out("Out", "[X's extents in the new order]")
    .with(attrs)
    .infer(infer_forward)
    .grad_reads({"X"})
    .cpu_any(transposed<OnHost>)
    .device_any(transposed<OnDevice>);

AB_GRAD(transpose)
    .doc("X@GRAD = Out@GRAD with its axes in the order of X.")
    .grad(second_order::linear)
    .cpu_any(transposed_back<OnHost>)
    .device_any(transposed_back<OnDevice>);

AB_OP(transpose2)
    .doc("Out = X with its axes permuted.")
    .in("X", "[...] any")
    .out("Out", "[X's extents in the new order]")
    .out_intermediate("XShape", "[0, X's extents...]")
    .with(attrs)
    .infer([](InferContext& c) {
      infer_forward(c);
      set_xshape(c);
    })
    .grad_reads({}, {"XShape"})
    .cpu_any(transposed<OnHost>)
    .device_any(transposed<OnDevice>);

AB_GRAD(transpose2)
    .doc("X@GRAD = Out@GRAD with its axes in the order of X.")
    .grad(second_order::linear)
    .infer(infer_second_gradient)
    .dtype_of_input("Out@GRAD")
    .cpu_any(transposed_back<OnHost>)
    .device_any(transposed_back<OnDevice>);

template <class On> Kernel reversed(const KernelArgs& op) {
  return
      [on = On(op.dtype()), axes = int_attr(op.op(), "axis"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
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
        on.strided(c, loop, c[x], offset, &c[out], 0);
      };
}

AB_OP(reverse)
    .doc("Out = X with the order of elements along some axes reversed.")
    .in("X", "[...] any")
    .out("Out", "[...] like X")
    .required_attr("axis", AttrType::kInts, "axes to reverse")
    .infer([](InferContext& c) {
      for (int64_t a : int_attr(c.op(), "axis")) normal_axis(a, c.in("X").shape.rank(), "axis");
      c.same_shape("Out", "X");
    })
    .grad([](GradContext& g) { g.op("reverse").in("X", g.dout("Out")).out("Out", g.din("X")); })
    .cpu_any(reversed<OnHost>)
    .device_any(reversed<OnDevice>);

}  // namespace
}  // namespace anabranch::tensor::transpose_op
