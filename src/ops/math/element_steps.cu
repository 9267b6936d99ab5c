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

// of(k): operand k.
template <class Operand> AB_HD float result_of(const ElementStep& s, const Operand& of) {
  const float x = of(0);
  switch (static_cast<StepCode>(s.code)) {
#define AB_CASES(name, F)                         \
  case StepCode::k##F: return F::forward(x, s.p); \
  case StepCode::k##F##Grad: return F::backward(x, of(1), s.p);
    AB_WAVES(AB_CASES)
    AB_GATES(AB_CASES)
#undef AB_CASES
#define AB_CASES(name, F)                                        \
  case StepCode::k##F: return F::of(x, of(1));                   \
  case StepCode::k##F##Dx: return F::dx(of(1), of(2), of(3), x); \
  case StepCode::k##F##Dy: return F::dy(of(1), of(2), of(3), x);
    AB_PAIRS(AB_CASES)
#undef AB_CASES
    case StepCode::kHardSwishAsFluidGrad: return HardSwishAsFluid::backward(x, of(1), s.p);
    case StepCode::kMod: return Mod::of(x, of(1));
    case StepCode::kScale: return Affine<float>{s.p[0], s.p[1], s.p[2] != 0}(x);
    case StepCode::kClip: return clipped(x, s.p[0], s.p[1]);
    case StepCode::kClipGrad: return clipped_grad(x, of(1), s.p[0], s.p[1]);
    case StepCode::kCopy: break;
  }
  return x;
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
      ElementStep next = steps[0];
      for (int s = 0; s < count; ++s) {
        const ElementStep step = next;
        if (s + 1 < count) next = steps[s + 1];  // on its way while this one is computed
        last = result_of(
            step, [&](int k) { return step.operands[k] == device::kPreviousResult ? last : values[step.operands[k]]; });
        if (step.kept != device::kNowhere) values[step.kept] = last;
        if (step.out != device::kNowhere) out[step.out][i] = last;
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
