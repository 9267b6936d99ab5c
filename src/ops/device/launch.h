// How ops declare their device kernels: factories that look up a plug-in kernel by its key once and fill its arguments
// in each step.
#pragma once
#include <array>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "opdef/device_context.h"
#include "opdef/op_def.h"
#include "ops/device/args.h"
#include "ops/kernels/broadcast.h"

namespace anabranch::device {

// Maps the engine's 16-bit floats, which have no arithmetic, to the kernels' types.
template <> inline constexpr const char* type_name<anabranch::float16> = type_name<half>;
template <> inline constexpr const char* type_name<anabranch::bfloat16> = type_name<bfloat16>;
template <> struct ComputeOf<anabranch::float16> { using type = float; };
template <> struct ComputeOf<anabranch::bfloat16> { using type = float; };

// .device<Ts...>(fn), plus the 16-bit floats if float is in the list.
template <class... Ts, class Fn> OpDef& offer(OpDef& def, Fn fn) {
  if constexpr ((std::is_same_v<Ts, float> || ...)) def.device<float16, anabranch::bfloat16>(fn);
  return def.device<Ts...>(fn);
}

inline DeviceIn operand(const Tensor& t) { return {t.raw(), t.bytes()}; }
inline DeviceOut operand(Tensor& t) { return {t.mutable_raw(), t.bytes()}; }

// Where kernels report faults and read the step number: for random ops and those declared .with(device_fault(...)).
inline FaultSink fault_of(const DeviceContext& c) { return {{c.status().fault, sizeof(uint64_t)}, c.status().node, 0}; }
inline DeviceIn step_of(const DeviceContext& c) { return {c.status().step, sizeof(uint32_t)}; }

// "f32" of float32: the last part of a kernel's key.
const char* type_name_of(DType dtype);

// "map/sigmoid/f32" of "map/sigmoid" for float.
ab_kernel kernel_of(const std::string& stem, DType dtype);
template <class T> ab_kernel kernel_of(const std::string& stem) { return kernel_of(stem, dtype_of<T>); }

// Attributes that a kernel takes as numbers, in its order.
struct NumbersOf {
  std::array<const char*, kMaxNumbers> names{};
  NumbersOf() = default;
  NumbersOf(std::initializer_list<const char*> list) { std::copy(list.begin(), list.end(), names.begin()); }
  std::array<double, kMaxNumbers> read(const KernelArgs& op) const;
};

// Out = f(X), element by element, by the kernel of this stem.
DTypeFactory each_element(std::string stem, NumbersOf numbers = {});
DTypeFactory map(const char* function, NumbersOf numbers = {});  // "map/<function>"
// X@GRAD from Out@GRAD and whichever of X and Out the gradient reads, by the kernel "map_grad/<function>".
DTypeFactory map_grad(const std::string& function, NumbersOf numbers = {});

// A loop of the engine as axes of a kernel.
template <int kOperands> Axes<kOperands> axes_of(const NdLoop<kOperands>& loop) {
  Axes<kOperands> axes{};
  axes.rank = loop.rank();
  for (int axis = 0; axis < axes.rank; ++axis) {
    axes.extent[axis] = loop.extent(axis);
    for (int k = 0; k < kOperands; ++k) axes.stride[k][axis] = loop.strides(axis)[static_cast<size_t>(k)];
  }
  return axes;
}

// Out = f(X, Y), broadcast, by the kernel of this stem.
DTypeFactory broadcast(std::string stem);
DTypeFactory binary(const char* function);  // "binary/<function>"
// Its gradients X@GRAD and Y@GRAD, by "binary_grad/<function>".
DTypeFactory binary_grad(const char* function);

}  // namespace anabranch::device
