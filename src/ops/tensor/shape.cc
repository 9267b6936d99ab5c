// Queries the extents of a tensor: shape, size.
#include "ops/declare/declare.h"

namespace anabranch::tensor::shape_op {
namespace {

AB_OP(shape)
    .doc("Returns the extents of Input.")
    .in("Input", "[...] any")
    .takes("Input", Holds::kTensorOrRows)
    .out("Out", "[rank] int32")
    .infer([](InferContext& c) { c.set_out("Out", Shape{c.in("Input").shape.rank()}, DType::kInt32); })
    .no_grad(kNotDifferentiable)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("Input"), out = op.out("Out")](KernelContext& c) {
        const Value& v = c.value(x);
        Shape s = v.is<SelectedRows>() ? v.rows().value.shape() : c[x].shape();
        if (v.is<SelectedRows>() && s.rank()) s.set(0, v.rows().height);
        AB_CHECK(s.rank() == c[out].numel(), ShapeMismatch, "Out must have one element per axis of Input {}, got {}",
                 s.str(), c[out].shape().str());
        int32_t* to = c[out].mutable_data<int32_t>();
        for (int64_t extent : s) *to++ = static_cast<int32_t>(extent);
      };
    });

AB_OP(size)
    .doc("Returns the number of elements of Input.")
    .in("Input", "[...] any")
    .out("Out", "[1] int64")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), DType::kInt64); })
    .no_grad("the size does not depend on values")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [input = op.in("Input"), out = op.out("Out")](KernelContext& c) {
        *c[out].mutable_data<int64_t>() = c[input].numel();
      };
    });

}  // namespace
}  // namespace anabranch::tensor::shape_op
