// fused_elementwise on devices: "element_steps". Each lane takes an element, or several of a large tensor, through all
// steps, which it reads from a table; the functions are those of the ops' own kernels, so results have the same bits.
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

// A value of the elements that a lane has at once.
template <int N> using Pack = device::Pack<float, N>;

// fn(k) for each of them, unrolled: they stay in registers.
template <int N, class Fn> AB_HD Pack<N> each_of(const Fn& fn) {
  const auto all = [&]<int... k>(std::integer_sequence<int, k...>) { return Pack<N>{{fn(k)...}}; };
  return all(std::make_integer_sequence<int, N>());
}

// Of the operands x and y, and those that of(2) and of(3) look up.
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

// Likewise of the codes up to kLastOfMost.
template <int N> AB_HD Pack<N> result_of_most(const ElementStep& s, const Pack<N>& x, const Pack<N>& y) {
  switch (static_cast<StepCode>(s.code)) {
    AB_EACH(Scale, (Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x.at[k])))
    AB_EACH(Add, Add::of(x.at[k], y.at[k]))
    AB_EACH(Sub, Sub::of(x.at[k], y.at[k]))
    default: return each_of<N>([&](int k) { return Mul::of(x.at[k], y.at[k]); });
  }
#undef AB_EACH
}

struct ElementSteps {
  using Args = device::ElementStepsArgs;
  // Of tensors that keep all lanes of a GPU busy each lane has several elements, so that it reads a step once for them.
  static constexpr int64_t kLarge = 1 << 18;
  static constexpr int kSeveral = 4;

  struct Input {
    const float* x;
    int64_t repeat, period;
    AB_HD float at(int64_t i, bool narrow) const {
      if (period == 0) return x[i];
      if (!narrow) return x[i / repeat % period];
      return x[static_cast<uint32_t>(i) / static_cast<uint32_t>(repeat) % static_cast<uint32_t>(period)];
    }
  };

  template <class T, int N> struct Body {
    Input in[fused::kMaxInputs];
    T* out[fused::kMaxStepsOnDevices];
    const ElementStep* steps;
    int64_t n, apart;  // from one element of a lane to its next
    int32_t inputs, count;
    bool narrow;  // 32 bits, which a GPU divides faster, hold the number of elements

    // The last elements of the last lanes are behind the end: those lanes compute their first ones again, and leave
    // them.
    AB_HD bool there(int64_t i, int k) const { return N == 1 || i + k * apart < n; }
    AB_HD int64_t place(int64_t i, int k) const { return there(i, k) ? i + k * apart : i; }

    // An output may lie in the memory of an input: all are read first.
    AB_HD void operator()(int64_t i) const {
      Pack<N> values[fused::kMaxInputs + fused::kMaxKept];
      for (int k = 0; k < inputs; ++k) {
        values[k] = each_of<N>([&](int e) { return in[k].at(place(i, e), narrow); });
      }
      Pack<N> last = {};
      ElementStep step = steps[0], next = steps[count > 1 ? 1 : 0];
      Pack<N> x = values[step.operands[0]], y = values[step.operands[1]];
      for (int s = 0; s < count; ++s) {
        // What comes next is on its way while this step is computed.
        const ElementStep after = steps[s + 2 < count ? s + 2 : s];
        const Pack<N> next_x = values[next.operands[0]], next_y = values[next.operands[1]];
        const auto of = [&](int k) { return step.previous >> k & 1 ? last : values[step.operands[k]]; };
        if (step.previous & 1) x = last;
        if (step.previous & 2) y = last;
        const bool is_of_most = step.code <= static_cast<uint8_t>(kLastOfMost);
        last = is_of_most ? result_of_most(step, x, y) : result_of(step, x, y, of);
        if (step.kept != device::kNowhere) values[step.kept] = last;
        if (step.out != device::kNowhere) leave(last, i, out[step.out]);
        step = next;
        next = after;
        x = next_x;
        y = next_y;
      }
    }

    AB_HD void leave(const Pack<N>& value, int64_t i, T* to) const {
      for (int k = 0; k < N; ++k) {
        if (there(i, k)) to[i + k * apart] = value.at[k];
      }
    }
  };

  template <class T> static int run(const device::Launch& launch, const Args& a) {
    return a.n < kLarge ? run_by<T, 1>(launch, a) : run_by<T, kSeveral>(launch, a);
  }

  template <class T, int N> static int run_by(const device::Launch& launch, const Args& a) {
    Body<T, N> body = {};
    for (int k = 0; k < a.inputs; ++k) body.in[k] = {a.in[k].x.get<T>(), a.in[k].repeat, a.in[k].period};
    for (int k = 0; k < a.outs; ++k) body.out[k] = a.out[k].get<T>();
    body.steps = a.steps.get<ElementStep>();
    body.n = a.n;
    body.apart = (a.n + N - 1) / N;
    body.inputs = a.inputs;
    body.count = a.count;
    body.narrow = a.n <= 0x7fffffff;
    return device::each(launch, body.apart, body);
  }
};

AB_KERNEL("element_steps", ElementSteps, float);

}  // namespace anabranch::math
