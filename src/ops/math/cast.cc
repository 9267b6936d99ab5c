// Out = X, converted to another dtype.
#include <type_traits>

#include "ops/declare/declare.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/half.h"
#include "ops/math/element_functions.h"

namespace anabranch::math {
namespace {

template <class To, class From> To converted(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, float16>) {
    return converted<To>(from_half(x));
  } else if constexpr (std::is_same_v<From, bfloat16>) {
    return converted<To>(device::float_of(uint32_t{x.bits} << 16));
  } else if constexpr (std::is_same_v<To, float16>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bfloat16>) {
    return {device::float_to_bfloat16(static_cast<float>(x))};
  } else {
    return converted_number<To>(x);
  }
}

template <class To, class From> Kernel cast_kernel(const KernelArgs& op) {
  return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
    map(c, kCheapGrain, c[x].numel(), c[x].data<From>(), c[out].mutable_data<To>(),
        [](From v) { return converted<To>(v); });
  };
}

AB_OP(cast)
    .doc("Out = X converted to a different dtype; floating-point numbers are truncated towards zero; bool: X != 0.")
    .in("X", "[...] any")
    .out("Out", "[...] out_dtype")
    .required_attr("out_dtype", AttrType::kInt, "id of the dtype")
    .required_attr("in_dtype", AttrType::kInt, "ignored: the dtype of X is used")
    .traits(kRowWise | kLinear)
    .infer([](InferContext& c) {
      c.same_as("Out", "X");
      c.out("Out").dtype = dtype_from_number(c.attr<int32_t>("out_dtype"));
    })
    .grad([](GradContext& g) {
      g.op("cast")
          .in("X", g.dout("Out"))
          .out("Out", g.din("X"))
          .attr("in_dtype", g.attr<int32_t>("out_dtype"))
          .attr("out_dtype", g.attr<int32_t>("in_dtype"));
    })
    .cpu<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t, bool, float16, bfloat16>(
        []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
          using From = T;
          const DType to = dtype_from_number(op.attr<int32_t>("out_dtype"));
          if (to == DType::kFloat16) return cast_kernel<float16, From>(op);
          if (to == DType::kBFloat16) return cast_kernel<bfloat16, From>(op);
          return visit_dtype(to, [&](auto to_tag) { return cast_kernel<typename decltype(to_tag)::type, From>(op); });
        })
    .device<float, double, int32_t, int64_t, int16_t, int8_t, uint8_t, bool, float16, bfloat16>(
        []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
          const DType from = dtype_of<T>;
          const DType to = dtype_from_number(op.attr<int32_t>("out_dtype"));
          const auto kernel =
              device_kernel(std::string("cast/") + device::type_name_of(from) + "/" + device::type_name_of(to));
          return [kernel, x = op.in("X"), out = op.out("Out")](const DeviceContext& c) {
            c.launch(kernel, device::MapArgs{device::operand(c[x]), device::operand(c[out]), c[x].numel(), {}});
          };
        });

}  // namespace
}  // namespace anabranch::math
