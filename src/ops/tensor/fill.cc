// Tensors of one value, and tensors like others.
#include <cstdlib>
#include <functional>

#include "ops/declare/declare.h"
#include "ops/declare/shape_args.h"
#include "ops/device/launch_tensor.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/whole.h"
#include "ops/kernels/wide.h"

namespace anabranch::tensor {
namespace {

// A number given both as float and as text, which keeps the digits of large integers.
struct Number {
  double real = 0;
  int64_t integer = 0;

  Number(float value, const std::string& text) : real(static_cast<double>(value)), integer(whole<int64_t>(real)) {
    if (text.empty()) return;
    char* end = nullptr;
    real = std::strtod(text.c_str(), &end);
    AB_CHECK(end != text.c_str() && *end == '\0', InvalidArgument, "str_value must be a number, got \"{}\"", text);
    integer = std::strtoll(text.c_str(), &end, 10);
    if (*end != '\0') integer = whole<int64_t>(real);
  }
  template <class T> T as() const {
    if constexpr (std::is_same_v<T, bool>)
      return real != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(integer);
    else
      return static_cast<T>(real);
  }
};

template <class T> void fill(const KernelContext& c, Tensor* out, T value) {
  T* to = out->mutable_data<T>();
  c.parallel_for(out->numel(), kCheapGrain,
                 [=](int64_t begin, int64_t end) { in_wide_vectors([=] { std::fill(to + begin, to + end, value); }); });
}

// One value into an output of whatever type; ValueTensor, where there is one, goes before the number.
Kernel fill_kernel(DType dtype, Out out, Number number, In from = {}) {
  return visit_dtype(dtype, [&](auto tag) -> Kernel {
    using T = typename decltype(tag)::type;
    return [=, value = number.as<T>()](KernelContext& c) {
      if (from) AB_CHECK(c[from].numel() == 1, ShapeMismatch, "ValueTensor must be [1], got {}", c[from].shape().str());
      fill(c, &c[out], from ? *c[from].template data<T>() : value);
    };
  });
}

Kernel fill_on_device(DType dtype, Out out, Number number, In from = {}) {
  return visit_dtype(dtype, [&](auto tag) -> Kernel {
    using T = typename decltype(tag)::type;
    return [=, kernel = device::kernel_of_size("fill", sizeof(T)), value = number.as<T>()](KernelContext& c) {
      device::FillArgs a = device::filled(c[out], value);
      if (from) {
        AB_CHECK(c[from].numel() == 1, ShapeMismatch, "ValueTensor must be [1], got {}", c[from].shape().str());
        a.number = {c[from].template data<T>(), sizeof(T)};
      }
      DeviceContext::of(c).launch(kernel, a);
    };
  });
}

DType dtype_attr(const ir::Op& op) { return dtype_from_number(op.attr<int32_t>("dtype")); }

Number number_attrs(const KernelArgs& op) {
  return {op.attr<float>("value"), op.op().has_attr("str_value") ? op.attr<std::string>("str_value") : ""};
}

OpDef& value_attrs(OpDef& def) {
  return def.attr<float>("value", 0.0f, "the value")
      .attr<std::string>("str_value", "", "the value as text; goes before value")
      .ignores("force_cpu", false)
      .attr<int32_t>("dtype", 5, "number of the element type");
}

// A tensor with the extents of the attribute `shape`, but one, which is that of an axis of Input.
void infer_batch_size_like(InferContext& c) {
  const Meta& like = c.in("Input");
  const std::vector<int64_t> extents = int_attr(c.op(), "shape");
  const int from = c.attr<int32_t>("input_dim_idx"), to = c.attr<int32_t>("output_dim_idx");
  AB_CHECK(from >= 0 && from < like.shape.rank(), InvalidArgument, "input_dim_idx is {}, Input is {}", from,
           like.shape.str());
  AB_CHECK(to >= 0 && to < static_cast<int>(extents.size()), InvalidArgument,
           "output_dim_idx is {}, shape has {} extents", to, extents.size());
  Shape shape(extents);
  // With sequences an item of the batch is a sequence; how many there are is known at run time.
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
    .doc("Out = a tensor full of one value.")
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
    .doc("Out = a tensor full of one value, one extent of which is that of Input (with sequences: their number).")
    .in("Input", "gives an extent")
    .out("Out", "as the attribute shape")
    .required_attr("shape", AttrType::kInts, "extents; the one at output_dim_idx does not count")
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
    .doc("Out = a tensor of X's shape full of one value.")
    .in("X", "[...] any")
    .out("Out", "[...] of dtype")
    .attr<float>("value", 0.0f, "the value")
    .attr<int32_t>("dtype", -1, "number of the element type; -1: X's")
    .infer([](InferContext& c) {
      const DType dtype = c.attr<int32_t>("dtype") == -1 ? c.in("X").dtype : dtype_attr(c.op());
      c.same_as("Out", "X");
      c.out("Out").dtype = dtype;
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) { return fill_kernel(dtype_like(op), op.out("Out"), number_attrs(op)); })
    .device_any([](const KernelArgs& op) { return fill_on_device(dtype_like(op), op.out("Out"), number_attrs(op)); });

AB_OP(fill_zeros_like)
    .doc("Out = zeros of X's shape and type.")
    .in("X", "[...] any")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "[...] as X")
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      c.out("Out").kind = VarKind::kLoDTensor;
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return fill_kernel(op.dtype(), op.out("Out"), {0.0f, ""});
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [out = op.out("Out")](KernelContext& c) { device::fill_with_zeros(c, &c[out]); };
    });

AB_OP(fill_zeros_like2)
    .doc("Out = zeros of X's shape.")
    .in("X", "[...] any")
    .out("Out", "[...] of dtype")
    .attr<int32_t>("dtype", 5, "number of the element type")
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      c.out("Out").dtype = dtype_attr(c.op());
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return fill_kernel(dtype_attr(op.op()), op.out("Out"), {0.0f, ""});
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return [out = op.out("Out")](KernelContext& c) { device::fill_with_zeros(c, &c[out]); };
    });

AB_OP(fill)
    .doc("Out = the numbers of an attribute.")
    .out("Out", "as the attribute shape; [1] where it is empty")
    .required_attr("value", AttrType::kFloats, "values, row-major, as many as shape has elements")
    .required_attr("shape", AttrType::kInts, "extents")
    .attr<int32_t>("dtype", 5, "number of the element type, not bool")
    .ignores("force_cpu", false)
    .infer([](InferContext& c) {
      const Shape shape(int_attr(c.op(), "shape"));
      AB_CHECK(shape.known(), InvalidArgument, "an extent of shape must be at least 0, got {}", shape.str());
      const auto count = static_cast<int64_t>(c.attr<std::vector<float>>("value").size());
      AB_CHECK(count == shape.numel(), ShapeMismatch,
               "value must hold as many numbers as shape {} has elements, got {}", shape.str(), count);
      c.set_out("Out", shape.rank() ? shape : scalar_shape(), dtype_attr(c.op()));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return visit_dtype(dtype_attr(op.op()), [&](auto tag) -> Kernel {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, bool>) AB_THROW(Unsupported, "dtype must not be bool");
        return [values = op.attr<std::vector<float>>("value"), out = op.out("Out")](KernelContext& c) {
          T* to = c[out].template mutable_data<T>();
          for (size_t i = 0; i < values.size(); ++i) to[i] = Number(values[i], "").as<T>();
        };
      });
    });

AB_OP(eye)
    .doc("Out = a matrix with ones on the main diagonal.")
    .out("Out", "[num_rows, num_columns]")
    .required_attr("num_rows", AttrType::kLong, "rows")
    .attr<int64_t>("num_columns", -1, "columns; -1: as many as rows")
    .attr<int32_t>("dtype", 5, "number of the element type")
    .infer([](InferContext& c) {
      const int64_t rows = c.attr<int64_t>("num_rows"), columns = c.attr<int64_t>("num_columns");
      AB_CHECK(rows >= 0 && columns >= -1, InvalidArgument,
               "num_rows must be at least 0 and num_columns at least -1, got {} and {}", rows, columns);
      c.set_out("Out", Shape{rows, columns == -1 ? rows : columns}, dtype_attr(c.op()));
    })
    .no_grad("a constant")
    .cpu_any([](const KernelArgs& op) {
      return visit_dtype(dtype_attr(op.op()), [&](auto tag) -> Kernel {
        using T = typename decltype(tag)::type;
        return [out = op.out("Out")](KernelContext& c) {
          const int64_t rows = c[out].shape()[0], columns = c[out].shape()[1];
          fill(c, &c[out], T(0));
          T* to = c[out].template mutable_data<T>();
          for (int64_t i = 0; i < std::min(rows, columns); ++i) to[i * columns + i] = T(1);
        };
      });
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return visit_dtype(dtype_attr(op.op()), [&](auto tag) -> Kernel {
        using T = typename decltype(tag)::type;
        return [kernel = device::kernel_of<T>("eye"), out = op.out("Out")](KernelContext& c) {
          const Shape& s = c[out].shape();
          DeviceContext::of(c).launch(kernel, device::MatrixArgs{{}, device::operand(c[out]), 1, s[0], s[1], 0, 0, 0});
        };
      });
    });

}  // namespace
}  // namespace anabranch::tensor
