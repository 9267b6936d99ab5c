// Constant tensors, and tensors shaped like others.

#include "ops/tensor/fill.h"
#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"

namespace anabranch::tensor::fill_op {
namespace {

// Fills an output of any dtype with one value; ValueTensor, if given, precedes the attributes.
Kernel fill_kernel(DType dtype, Out out, Number number, In from = {}) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Kernel {
    return [=, value = number.as<T>()](KernelContext& c) {
      if (from) AB_CHECK(c[from].numel() == 1, ShapeMismatch, "ValueTensor must be [1], got {}", c[from].shape().str());
      fill(c, &c[out], from ? *c[from].data<T>() : value);
    };
  });
}

Kernel fill_on_device(DType dtype, Out out, Number number, In from = {}) {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Kernel {
    return [=, kernel = device::kernel_of_size("fill", sizeof(T)), value = number.as<T>()](const DeviceContext& c) {
      device::FillArgs a = device::filled(c[out], value);
      if (from) {
        AB_CHECK(c[from].numel() == 1, ShapeMismatch, "ValueTensor must be [1], got {}", c[from].shape().str());
        a.number = {c[from].data<T>(), sizeof(T)};
      }
      c.launch(kernel, a);
    };
  });
}

Number number_attrs(const KernelArgs& op) {
  return {op.attr<float>("value"), op.op().has_attr("str_value") ? op.attr<std::string>("str_value") : ""};
}

OpDef& value_attrs(OpDef& def) {
  return def.attr<float>("value", 0.0f, "the value")
      .attr<std::string>("str_value", "", "the value as text; precedes value")
      .ignores("force_cpu", false)
      .attr<int32_t>("dtype", 5, "id of the element type");
}

// A tensor with the extents of the attribute `shape`, except one, which is that of an axis of Input.
void infer_batch_size_like(InferContext& c) {
  const Meta& like = c.in("Input");
  std::vector<int64_t> extents = int_attr(c.op(), "shape");
  const int from = c.attr<int32_t>("input_dim_idx"), to = c.attr<int32_t>("output_dim_idx");
  AB_CHECK(from >= 0 && from < like.shape.rank(), InvalidArgument,
           "input_dim_idx must be an axis of Input, got {} for {}", from, like.shape.str());
  AB_CHECK(to >= 0 && to < static_cast<int>(extents.size()), InvalidArgument,
           "output_dim_idx must be below the number of extents of shape, got {} of {}", to, extents.size());
  extents[static_cast<size_t>(to)] = kUnknown;  // replaced by that of Input
  Shape shape(extents);
  // With LoD the batch counts sequences; their number is known at run time.
  const bool has_lod = like.lod && !like.lod->empty();
  const int64_t items = has_lod                              ? static_cast<int64_t>(like.lod->back().size()) - 1
                        : !c.runtime() && like.lod_level > 0 ? kUnknown
                                                             : like.shape[from];
  shape.set(to, from == 0 ? items : like.shape[from]);
  for (int i = 0; i < shape.rank(); ++i) {
    AB_CHECK(i == to || shape[i] >= 0, InvalidArgument, "extent {} of shape must be at least 0, got {}", i, shape[i]);
  }
  c.set_out("Out", shape, dtype_attr(c.op()));
}

AB_OP(fill_constant)
    .doc("Out = a tensor filled with one value.")
    .in_optional("ValueTensor", "[1]: the value")
    .in_optional("ShapeTensor", "[rank] int: the shape")
    .in_optional_list("ShapeTensorList", "[1] int each: the extents")
    .out("Out", "as the attribute shape")
    .shape_from("ShapeTensor")
    .shape_from("ShapeTensorList")
    .attr<std::vector<int64_t>>("shape", {}, "extents")
    .traits(kConstant)
    .with(value_attrs)
    .infer([](InferContext& c) {
      const IntArg shape = int_arg(c, "ShapeTensor", "ShapeTensorList", int_attr(c.op(), "shape"), kUnknown);
      for (int64_t extent : shape.values) {
        AB_CHECK(extent >= 0 || !c.runtime(), InvalidArgument, "an extent of shape must be at least 0, got {}", extent);
      }
      c.set_out("Out", shape.values.empty() ? scalar_shape() : Shape(shape.values), dtype_attr(c.op()));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return fill_kernel(dtype_attr(op.op()), op.out("Out"), number_attrs(op), op.in("ValueTensor"));
    })
    .device_any([](const KernelArgs& op) {
      return fill_on_device(dtype_attr(op.op()), op.out("Out"), number_attrs(op), op.in("ValueTensor"));
    });

AB_OP(fill_constant_batch_size_like)
    .doc("Out = a tensor filled with one value, with one extent taken from Input (with LoD: the number of sequences).")
    .in("Input", "provides an extent")
    .out("Out", "as the attribute shape")
    .required_attr("shape", AttrType::kInts, "extents; the one at output_dim_idx is ignored")
    .attr<int32_t>("input_dim_idx", 0, "axis of Input")
    .attr<int32_t>("output_dim_idx", 0, "axis of Out")
    .with(value_attrs)
    .infer(infer_batch_size_like)
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) { return fill_kernel(dtype_attr(op.op()), op.out("Out"), number_attrs(op)); })
    .device_any([](const KernelArgs& op) {
      return fill_on_device(dtype_attr(op.op()), op.out("Out"), number_attrs(op));
    });

DType dtype_like(const KernelArgs& op) { return op.attr<int32_t>("dtype") == -1 ? op.dtype() : dtype_attr(op.op()); }

AB_OP(fill_any_like)
    .doc("Out = a tensor of X's shape filled with one value.")
    .in("X", "[...] any")
    .out("Out", "[...] dtype")
    .attr<float>("value", 0.0f, "the value")
    .attr<int32_t>("dtype", -1, "id of the dtype; -1: that of X")
    .infer([](InferContext& c) {
      const DType dtype = c.attr<int32_t>("dtype") == -1 ? c.in("X").dtype : dtype_attr(c.op());
      c.same_as("Out", "X");
      c.out("Out").dtype = dtype;
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) { return fill_kernel(dtype_like(op), op.out("Out"), number_attrs(op)); })
    .device_any([](const KernelArgs& op) { return fill_on_device(dtype_like(op), op.out("Out"), number_attrs(op)); });

AB_OP(fill_zeros_like)
    .doc("Out = zeros with the shape and dtype of X.")
    .in("X", "[...] any")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[...] like X")
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      c.out("Out").kind = VarKind::kLoDTensor;
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return fill_kernel(op.dtype(), op.out("Out"), {0.0f, ""});
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [out = op.out("Out")](const DeviceContext& c) { device::fill_zero(c, c[out]); };
    });

AB_OP(fill_zeros_like2)
    .doc("Out = zeros with the shape of X.")
    .in("X", "[...] any")
    .out("Out", "[...] dtype")
    .attr<int32_t>("dtype", 5, "id of the element type")
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      c.out("Out").dtype = dtype_attr(c.op());
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return fill_kernel(dtype_attr(op.op()), op.out("Out"), {0.0f, ""});
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [out = op.out("Out")](const DeviceContext& c) { device::fill_zero(c, c[out]); };
    });

AB_OP(fill)
    .doc("Out = the values of an attribute.")
    .out("Out", "as the attribute shape; [1] if it is empty")
    .required_attr("value", AttrType::kFloats, "values, row-major, one per element of shape")
    .required_attr("shape", AttrType::kInts, "extents")
    .attr<int32_t>("dtype", 5, "id of the dtype, not bool")
    .ignores("force_cpu", false)
    .infer([](InferContext& c) {
      const Shape shape(int_attr(c.op(), "shape"));
      AB_CHECK(shape.known(), InvalidArgument, "an extent of shape must be at least 0, got {}", shape.str());
      const auto count = static_cast<int64_t>(c.attr<std::vector<float>>("value").size());
      AB_CHECK(count == shape.numel(), ShapeMismatch, "value must hold one number per element of shape {}, got {}",
               shape.str(), count);
      c.set_out("Out", shape.rank() ? shape : scalar_shape(), dtype_attr(c.op()));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return visit_dtype(dtype_attr(op.op()), [&]<class T>(TypeTag<T>) -> Kernel {
        if constexpr (std::is_same_v<T, bool>) AB_THROW(Unsupported, "dtype must not be bool");
        return [values = op.attr<std::vector<float>>("value"), out = op.out("Out")](KernelContext& c) {
          T* to = c[out].mutable_data<T>();
          for (size_t i = 0; i < values.size(); ++i) to[i] = Number(values[i], "").as<T>();
        };
      });
    });

}  // namespace
}  // namespace anabranch::tensor::fill_op
