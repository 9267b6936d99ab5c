// Copies, and constants that are part of the program.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::tensor::assign_op {
namespace {

template <class T, class Attr> Kernel constant(const KernelArgs& op, const char* name) {
  const auto& values = op.attr<std::vector<Attr>>(name);
  return [name, values, out = op.out("Out")](KernelContext& c) {
    AB_CHECK(static_cast<int64_t>(values.size()) == c[out].numel(), ShapeMismatch,
             "{} must hold one value per element of shape {}, got {}", name, c[out].shape().str(), values.size());
    std::copy(values.begin(), values.end(), c[out].mutable_data<T>());
  };
}

AB_OP(assign)
    .doc("Out = a copy of X.")
    .in_optional("X", "a tensor, sparse rows or an array of tensors")
    .takes("X", Holds::kAnything)
    .out("Out", "like X")
    .may_share("X", "Out")
    .traits(kRowWise | kLinear)
    .copies_when([](const ir::Op&) { return true; })
    .infer([](InferContext& c) {
      if (c.has_in("X")) c.same_as("Out", "X");
    })
    .grad([](GradContext& g) { g.op("assign").in("X", g.dout("Out")).out("Out", g.din("X")); })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        if (!x || &c.value(x) == &c.value(out)) return;
        if (c.value(x).is<Tensor>()) return copy_bytes(c, c[x], &c[out]);
        c.value(out).copy_from(c.value(x));
      };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        if (x) device::copy_whole(c, c[x], &c[out]);
      };
    });

AB_OP(assign_value)
    .doc("Out = the values of the attribute for the dtype.")
    .out("Out", "as the attribute shape")
    .required_attr("shape", AttrType::kInts, "extents")
    .required_attr("dtype", AttrType::kInt, "id of the dtype: bool, float32, int32 or int64")
    .attr<std::vector<int32_t>>("bool_values", {}, "values, row-major")
    .attr<std::vector<float>>("fp32_values", {}, "values")
    .attr<std::vector<int32_t>>("int32_values", {}, "values")
    .attr<std::vector<int64_t>>("int64_values", {}, "values")
    .infer([](InferContext& c) {
      const auto& extents = c.attr<std::vector<int32_t>>("shape");
      const Shape shape(std::vector<int64_t>(extents.begin(), extents.end()));
      AB_CHECK(shape.known() && shape.rank() > 0, InvalidArgument,
               "shape must have at least one extent and no negative ones, got {}", shape.str());
      c.set_out("Out", shape, dtype_from_number(c.attr<int32_t>("dtype")));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const DType dtype = dtype_from_number(op.attr<int32_t>("dtype"));
      switch (dtype) {
        case DType::kBool: return constant<bool, int32_t>(op, "bool_values");
        case DType::kFloat32: return constant<float, float>(op, "fp32_values");
        case DType::kInt32: return constant<int32_t, int32_t>(op, "int32_values");
        case DType::kInt64: return constant<int64_t, int64_t>(op, "int64_values");
        default: AB_THROW(Unsupported, "dtype must be bool, float32, int32 or int64, got {}", dtype_name(dtype));
      }
    });

}  // namespace
}  // namespace anabranch::tensor::assign_op
