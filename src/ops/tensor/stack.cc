// Joins tensors along a new axis, and splits them: stack, unstack.
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/tensor/join.h"

namespace anabranch::tensor::stack_op {
namespace {

// An axis of the stacked result.
int new_axis(const ir::Op& op, int rank) { return normal_axis(op.attr<int32_t>("axis"), rank + 1, "axis"); }

void infer_stacked(InferContext& c, const char* from, const char* to) {
  const Meta& first = c.in(from);
  for (int i = 1; i < c.n_in(from); ++i) {
    AB_CHECK(compatible(first.shape, c.in(from, i).shape), ShapeMismatch, "{}[{}] must be {}, like {}[0], got {}", from,
             i, first.shape.str(), from, c.in(from, i).shape.str());
    AB_CHECK(first.dtype == c.in(from, i).dtype, InvalidArgument, "{}[{}] must hold {}, like {}[0], got {}", from, i,
             dtype_name(first.dtype), from, dtype_name(c.in(from, i).dtype));
  }
  const int axis = new_axis(c.op(), first.shape.rank());
  Shape out = first.shape.slice(0, axis);
  out.push_back(c.n_in(from));
  for (int i = axis; i < first.shape.rank(); ++i) out.push_back(first.shape[i]);
  c.set_out(to, out, first.dtype);
}

void infer_unstack(InferContext& c, const char* from, const char* to) {
  const Meta& x = c.in(from);
  AB_CHECK(x.shape.rank() > 0, ShapeMismatch, "{} must have at least one axis, got a scalar", from);
  const int axis = new_axis(c.op(), x.shape.rank() - 1), n = c.n_out(to);
  AB_CHECK(x.shape[axis] == n || x.shape[axis] == kUnknown, InvalidArgument,
           "{} must have an extent of {}, one for each output, at axis {}, got {}", from, n, axis, x.shape.str());
  Shape out = x.shape.slice(0, axis);
  for (int i = axis + 1; i < x.shape.rank(); ++i) out.push_back(x.shape[i]);
  if (out.rank() == 0) out = scalar_shape();
  for (int i = 0; i < n; ++i) c.set_out(to, out, x.dtype, i);
}

template <class On> Kernel stack_kernel(const KernelArgs& op, const char* from, const char* to) {
  return [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), xs = op.in(from), out = op.out(to)](KernelContext& c) {
    join(on, c, xs, normal_axis(attr, c.at(xs, 0).shape().rank() + 1, "axis"), &c[out]);
  };
}

template <class On> Kernel unstack_kernel(const KernelArgs& op, const char* from, const char* to) {
  return [on = On(op.dtype()), attr = op.attr<int32_t>("axis"), x = op.in(from), outs = op.out(to)](KernelContext& c) {
    const Shape& s = c[x].shape();
    const int axis = normal_axis(attr, s.rank(), "axis");
    const int64_t width = s.numel(axis + 1, s.rank());
    cut(on, c, c[x], s.numel(0, axis), outs, [=](int) { return width; });
  };
}

AB_OP(stack)
    .doc("Y = the tensors X, stacked along a new axis.")
    .in_list("X", "tensors of one shape")
    .out("Y", "[..., number of tensors, ...]")
    .attr<int32_t>("axis", 0, "index of the new axis; negative: from the end")
    .infer([](InferContext& c) {
      infer_stacked(c, "X", "Y");
      share_fitting_lod(c, "Y", "X");
    })
    .grad_reads({})
    .cpu_any([](const KernelArgs& op) { return stack_kernel<OnHost>(op, "X", "Y"); })
    .device_any([](const KernelArgs& op) { return stack_kernel<OnDevice>(op, "X", "Y"); });

AB_GRAD(stack)
    .doc("X@GRAD[i] = Y@GRAD at index i of the new axis.")
    .grad(second_order::linear)
    .infer([](InferContext& c) { infer_unstack(c, "Y@GRAD", "X@GRAD"); })
    .cpu_any([](const KernelArgs& op) { return unstack_kernel<OnHost>(op, "Y@GRAD", "X@GRAD"); })
    .device_any([](const KernelArgs& op) { return unstack_kernel<OnDevice>(op, "Y@GRAD", "X@GRAD"); });

AB_OP(unstack)
    .doc("Y[i] = X at index i of an axis, without that axis.")
    .in("X", "[...] any")
    .out_list("Y", "shape of X without the axis")
    .attr<int32_t>("axis", 0, "axis to remove; negative: from the end")
    .attr<int32_t>("num", 0, "number of outputs; 0: that of Y")
    .infer([](InferContext& c) {
      const int32_t num = c.attr<int32_t>("num");
      AB_CHECK(num == 0 || num == c.n_out("Y"), InvalidArgument, "num must be the number of outputs, {}, got {}",
               c.n_out("Y"), num);
      infer_unstack(c, "X", "Y");
    })
    .grad_reads({})
    .cpu_any([](const KernelArgs& op) { return unstack_kernel<OnHost>(op, "X", "Y"); })
    .device_any([](const KernelArgs& op) { return unstack_kernel<OnDevice>(op, "X", "Y"); });

AB_GRAD(unstack)
    .doc("X@GRAD = the tensors Y@GRAD, stacked along the axis.")
    .grad(second_order::linear)
    .infer([](InferContext& c) { infer_stacked(c, "Y@GRAD", "X@GRAD"); })
    .cpu_any([](const KernelArgs& op) { return stack_kernel<OnHost>(op, "Y@GRAD", "X@GRAD"); })
    .device_any([](const KernelArgs& op) { return stack_kernel<OnDevice>(op, "Y@GRAD", "X@GRAD"); });

}  // namespace
}  // namespace anabranch::tensor::stack_op
