// fused_elementwise on devices: "element_steps". Each lane takes an element through all steps, which it reads from a
// table; the functions are those of the ops' own kernels, so results have the same bits.
#include "ops/device/args_steps.h"
#include "ops/device/kernels.h"
#include "ops/math/arithmetic_functions.h"
#include "ops/math/element_functions.h"
#include "ops/math/gelu_functions.h"
#include "ops/math/rectifier_functions.h"
#include "ops/math/step_functions.h"

namespace anabranch::math {

using device::ElementStep;

// Of the operands x and y, and those that of(2) and of(3) look up.
template <class Operand> AB_HD float result_of(const ElementStep& s, float x, float y, const Operand& of) {
  switch (static_cast<StepCode>(s.code)) {
#define AB_CASES(name, F)                         \
  case StepCode::k##F: return F::forward(x, s.p); \
  case StepCode::k##F##Grad: return F::backward(x, y, s.p);
    AB_WAVES(AB_CASES)
    AB_GATES(AB_CASES)
#undef AB_CASES
#define AB_CASES(name, F)                                    \
  case StepCode::k##F: return F::of(x, y);                   \
  case StepCode::k##F##Dx: return F::dx(y, of(2), of(3), x); \
  case StepCode::k##F##Dy: return F::dy(y, of(2), of(3), x);
    AB_PAIRS(AB_CASES)
#undef AB_CASES
    case StepCode::kHardSwishAsFluidGrad: return HardSwishAsFluid::backward(x, y, s.p);
    case StepCode::kMod: return Mod::of(x, y);
    case StepCode::kScale: return Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x);
    case StepCode::kClip: return clipped(x, s.p[0], s.p[1]);
    case StepCode::kClipGrad: return clipped_grad(x, y, s.p[0], s.p[1]);
    case StepCode::kCopy: break;
  }
  return x;
}

// Likewise of the codes up to kLastOfMost.
AB_HD inline float result_of_most(const ElementStep& s, float x, float y) {
  switch (static_cast<StepCode>(s.code)) {
    case StepCode::kScale: return Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x);
    case StepCode::kAdd: return Add::of(x, y);
    case StepCode::kSub: return Sub::of(x, y);
    default: return Mul::of(x, y);
  }
}

struct ElementSteps {
  using Args = device::ElementStepsArgs;

  struct Input {
    const float* x;
    int64_t repeat, period;
    AB_HD float at(int64_t i, bool narrow) const {
      if (period == 0) return x[i];
      if (!narrow) return x[i / repeat % period];
      return x[static_cast<uint32_t>(i) / static_cast<uint32_t>(repeat) % static_cast<uint32_t>(period)];
    }
  };

  template <class T> struct Body {
    Input in[fused::kMaxInputs];
    T* out[fused::kMaxStepsOnDevices];
    const ElementStep* steps;
    int32_t inputs, count;
    bool narrow;  // 32 bits, which a GPU divides faster, hold the number of elements

    // An output may lie in the memory of an input: all are read first.
    AB_HD void operator()(int64_t i) const {
      float values[fused::kMaxInputs + fused::kMaxKept];
      for (int k = 0; k < inputs; ++k) values[k] = in[k].at(i, narrow);
      float last = 0;
      ElementStep step = steps[0], next = steps[count > 1 ? 1 : 0];
      float x = values[step.operands[0]], y = values[step.operands[1]];
      for (int s = 0; s < count; ++s) {
        // What comes next is on its way while this step is computed.
        const ElementStep after = steps[s + 2 < count ? s + 2 : s];
        const float next_x = values[next.operands[0]], next_y = values[next.operands[1]];
        const auto of = [&](int k) { return step.previous >> k & 1 ? last : values[step.operands[k]]; };
        if (step.previous & 1) x = last;
        if (step.previous & 2) y = last;
        const bool is_of_most = step.code <= static_cast<uint8_t>(kLastOfMost);
        last = is_of_most ? result_of_most(step, x, y) : result_of(step, x, y, of);
        if (step.kept != device::kNowhere) values[step.kept] = last;
        if (step.out != device::kNowhere) out[step.out][i] = last;
        step = next;
        next = after;
        x = next_x;
        y = next_y;
      }
    }
  };

  template <class T> static int run(const device::Launch& launch, const Args& a) {
    Body<T> body = {};
    for (int k = 0; k < a.inputs; ++k) body.in[k] = {a.in[k].x.get<T>(), a.in[k].repeat, a.in[k].period};
    for (int k = 0; k < a.outs; ++k) body.out[k] = a.out[k].get<T>();
    body.steps = a.steps.get<ElementStep>();
    body.inputs = a.inputs;
    body.count = a.count;
    body.narrow = a.n <= 0x7fffffff;
    return device::each(launch, a.n, body);
  }
};

AB_KERNEL("element_steps", ElementSteps, float);

}  // namespace anabranch::math
