// Splits a tensor into its slices along an axis, without that axis.
#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::tensor::unbind_op {
namespace {

void infer_unbind(InferContext& c) {
  const Meta& x = c.in("X");
  const int axis = normal_axis(c.attr<int32_t>("axis"), x.shape.rank(), "axis"), n = c.n_out("Out");
  AB_CHECK(x.shape[axis] == n || x.shape[axis] == kUnknown, InvalidArgument,
           "X must have an extent of {}, one for each output, at axis {}, got {}", n, axis, x.shape.str());
  Shape out = x.shape.slice(0, axis);
  for (int i = axis + 1; i < x.shape.rank(); ++i) out.push_back(x.shape[i]);
  if (out.rank() == 0) out = scalar_shape();
  for (int i = 0; i < n; ++i) {
    c.set_out("Out", out, x.dtype, i);
    share_fitting_lod(c, "Out", "X", i);
  }
}

// The slices of a vector keep one axis here, so concat joins them again.
void join_again(GradContext& g) {
  const ir::VarRef x = g.block().find_var_recursive(g.in("X").at(0));
  const bool vector = x && x->shape.rank() == 1;
  g.op(vector ? "concat" : "stack")
      .bare()
      .in("X", g.dout("Out"))
      .out(vector ? "Out" : "Y", g.din("X"))
      .attr("axis", g.attr<int32_t>("axis"));
}

template <class On> Kernel unbind_kernel(const KernelArgs& op) {
  return
      [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), x = op.in("X"), outs = op.out("Out")](KernelContext& c) {
        const Shape& s = c[x].shape();
        const int axis = normal_axis(attr, s.rank(), "axis");
        const int64_t outer = s.numel(0, axis), inner = s.numel(axis + 1, s.rank());
        for (int i = 0; i < outs.count; ++i) {
          if (!c.needs(outs, i)) continue;
          NdLoop<2> loop;
          loop.add_axis(outer, {inner, s[axis] * inner});
          loop.add_axis(inner, {1, 1});
          on.strided(c, loop, c[x], i * inner, &c.at(outs, i), 0);
        }
      };
}

AB_OP(unbind)
    .doc("Out[i] = X at index i of an axis, without that axis.")
    .in("X", "[...] numbers")
    .out_list("Out", "shape of X without the axis, [1] if no axis is left; one per index of the axis")
    .attr<int32_t>("axis", 0, "axis to remove; negative: from the end")
    .infer(infer_unbind)
    .grad(join_again)
    .cpu<float, double, int32_t, int64_t>([](auto, const KernelArgs& op) { return unbind_kernel<device::OnHost>(op); })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([](auto, const KernelArgs& op) {
      return unbind_kernel<device::OnDevice>(op);
    });

}  // namespace
}  // namespace anabranch::tensor::unbind_op
