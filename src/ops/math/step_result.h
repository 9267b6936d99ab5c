// One step of fused_elementwise on devices, shared by interpreted kernels and those compiled for their steps.
#pragma once
#include <utility>

#include "ops/device/args_steps.h"
#include "ops/device/pack.h"
#include "ops/math/arithmetic_functions.h"
#include "ops/math/element_functions.h"
#include "ops/math/gelu_functions.h"
#include "ops/math/rectifier_functions.h"
#include "ops/math/step_functions.h"

namespace anabranch::math {

using device::ElementStep;

// The values of the elements that a lane processes at once.
template <int N> using Pack = device::Pack<float, N>;

// fn(k) for each of them, unrolled: they stay in registers.
template <int N, class Fn> AB_HD Pack<N> each_of(const Fn& fn) {
  const auto all = [&]<int... k>(std::integer_sequence<int, k...>) { return Pack<N>{{fn(k)...}}; };
  return all(std::make_integer_sequence<int, N>());
}

// For the operands x and y, and those that of(2) and of(3) look up.
template <int N, class Operand>
AB_HD Pack<N> result_of(const ElementStep& s, const Pack<N>& x, const Pack<N>& y, const Operand& of) {
#define AB_EACH(code, result) \
  case StepCode::k##code: return each_of<N>([&](int k) { return result; });
  switch (static_cast<StepCode>(s.code)) {
#define AB_CASES(name, F)              \
  AB_EACH(F, F::forward(x.at[k], s.p)) \
  AB_EACH(F##Grad, F::backward(x.at[k], y.at[k], s.p))
    AB_WAVES(AB_CASES)
    AB_GATES(AB_CASES)
#undef AB_CASES
#define AB_CASES(name, F)                                           \
  AB_EACH(F, F::of(x.at[k], y.at[k]))                               \
  AB_EACH(F##Dx, F::dx(y.at[k], of(2).at[k], of(3).at[k], x.at[k])) \
  AB_EACH(F##Dy, F::dy(y.at[k], of(2).at[k], of(3).at[k], x.at[k]))
    AB_PAIRS(AB_CASES)
#undef AB_CASES
    AB_EACH(HardSwishAsFluidGrad, HardSwishAsFluid::backward(x.at[k], y.at[k], s.p))
    AB_EACH(Mod, Mod::of(x.at[k], y.at[k]))
    AB_EACH(Scale, (Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x.at[k])))
    AB_EACH(Clip, clipped(x.at[k], s.p[0], s.p[1]))
    AB_EACH(ClipGrad, clipped_grad(x.at[k], y.at[k], s.p[0], s.p[1]))
    case StepCode::kCopy: break;
  }
  return x;
}

// The same for the codes up to kLastOfMost.
template <int N> AB_HD Pack<N> result_of_most(const ElementStep& s, const Pack<N>& x, const Pack<N>& y) {
  switch (static_cast<StepCode>(s.code)) {
    AB_EACH(Scale, (Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x.at[k])))
    AB_EACH(Add, Add::of(x.at[k], y.at[k]))
    AB_EACH(Sub, Sub::of(x.at[k], y.at[k]))
    default: return each_of<N>([&](int k) { return Mul::of(x.at[k], y.at[k]); });
  }
#undef AB_EACH
}

}  // namespace anabranch::math
