// How ops declare their kernels for devices: factories that look a kernel of the plug-in up by its key, once, and fill
// its arguments in each step.
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

// The engine's 16-bit floats, which have no arithmetic, are the kernels' own.
template <> inline constexpr const char* type_name<anabranch::float16> = type_name<half>;
template <> inline constexpr const char* type_name<anabranch::bfloat16> = type_name<bfloat16>;
template <> struct ComputeOf<anabranch::float16> { using type = float; };
template <> struct ComputeOf<anabranch::bfloat16> { using type = float; };

// .device<Ts...>(fn), and of the 16-bit floats where float is one of them.
template <class... Ts, class Fn> OpDef& offer(OpDef& def, Fn fn) {
  if constexpr ((std::is_same_v<Ts, float> || ...)) def.device<float16, anabranch::bfloat16>(fn);
  return def.device<Ts...>(fn);
}

inline DeviceIn operand(const Tensor& t) { return {t.raw(), t.bytes()}; }
inline DeviceOut operand(Tensor& t) { return {t.mutable_raw(), t.bytes()}; }

// Where kernels report, and find the number of the step: of random ops and those declared .with(device_fault(...)).
inline FaultSink fault_of(const DeviceContext& c) { return {{c.words().fault, sizeof(uint64_t)}, c.words().node, 0}; }
inline DeviceIn step_of(const DeviceContext& c) { return {c.words().step, sizeof(uint32_t)}; }

// "map/sigmoid/f32" of "map/sigmoid" for float.
template <class T> ab_kernel kernel_of(const std::string& stem) { return device_kernel(stem + "/" + type_name<T>); }

// Attributes that a kernel takes as numbers, in its order.
struct NumbersOf {
  std::array<const char*, kMaxNumbers> names{};
  NumbersOf() = default;
  NumbersOf(std::initializer_list<const char*> list) { std::copy(list.begin(), list.end(), names.begin()); }
  std::array<double, kMaxNumbers> read(const KernelArgs& op) const {
    std::array<double, kMaxNumbers> p{};
    for (size_t k = 0; k < p.size() && names[k]; ++k) p[k] = static_cast<double>(op.attr<float>(names[k]));
    return p;
  }
};

// Out = f(X), element by element, by the kernel of this stem.
inline auto each_element(std::string stem, NumbersOf numbers = {}) {
  return [=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [kernel = kernel_of<T>(stem), x = op.in("X"), out = op.out("Out"), p = numbers.read(op)](KernelContext& c) {
      MapArgs a{operand(c[x]), operand(c[out]), c[x].numel(), {}};
      std::copy(p.begin(), p.end(), a.p);
      DeviceContext::of(c).launch(kernel, a);
    };
  };
}

inline auto map(const char* function, NumbersOf numbers = {}) {
  return each_element(std::string("map/") + function, numbers);
}

// X@GRAD from Out@GRAD and the one of X and Out that the gradient reads, by the kernel "map_grad/<function>".
inline auto map_grad(std::string function, NumbersOf numbers = {}) {
  return [=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const bool reads_x = op.has_in("X"), reads_out = op.has_in("Out");
    return [kernel = kernel_of<T>("map_grad/" + function), x = reads_x ? op.in("X") : In(),
            out = reads_out ? op.in("Out") : In(), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
            p = numbers.read(op)](KernelContext& c) {
      MapGradArgs a{};
      if (x) a.x = operand(c[x]);
      if (out) a.y = operand(c[out]);
      a.dy = operand(c[dout]);
      a.dx = operand(c[dx]);
      a.n = c[dout].numel();
      std::copy(p.begin(), p.end(), a.p);
      DeviceContext::of(c).launch(kernel, a);
    };
  };
}

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
inline auto broadcast(std::string stem) {
  return [=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [kernel = kernel_of<T>(stem), x = op.in("X"), y = op.in("Y"), out = op.out("Out"),
            axis = op.attr<int32_t>("axis")](KernelContext& c) {
      BinaryArgs a{operand(c[x]), operand(c[y]), operand(c[out]), {}, {}};
      a.axes = axes_of(broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis));
      DeviceContext::of(c).launch(kernel, a);
    };
  };
}

inline auto binary(const char* function) { return broadcast(std::string("binary/") + function); }

// X@GRAD and Y@GRAD of it, by "binary_grad/<function>".
inline auto binary_grad(const char* function) {
  return [=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In out = op.has_in("Out") ? op.in("Out") : In();
    return [kernel = kernel_of<T>(std::string("binary_grad/") + function), x = op.in("X"), y = op.in("Y"), out,
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD"),
            axis = op.attr<int32_t>("axis")](KernelContext& c) {
      BinaryGradArgs a{};
      a.x = operand(c[x]);
      a.y = operand(c[y]);
      if (out) a.out = operand(c[out]);
      a.dout = operand(c[dout]);
      if (c.wants(dx)) a.dx = operand(c[dx]);
      if (c.wants(dy)) a.dy = operand(c[dy]);
      a.axes = axes_of(broadcast_loop(c[dout].shape(), c[x].shape(), c[y].shape(), axis));
      DeviceContext::of(c).launch(kernel, a);
    };
  };
}

}  // namespace anabranch::device
