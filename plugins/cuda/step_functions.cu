// Steps of fused_elementwise, each a separate function, compiled to PTX: step_kernels.cc builds kernels from these
// texts. Operands as in step_result.h; p: the step's numbers.
#include "ops/math/step_result.h"

namespace anabranch::math {
namespace {

__device__ __forceinline__ float step(StepCode code, float x, float y, float u, float v, float p0, float p1, float p2,
                                      float p3) {
  ElementStep s{};
  s.code = static_cast<uint8_t>(code);
  s.p[0] = p0, s.p[1] = p1, s.p[2] = p2, s.p[3] = p3;
  return result_of<1>(s, {{x}}, {{y}}, [&](int k) { return Pack<1>{{k == 2 ? u : v}}; }).at[0];
}

}  // namespace

#define AB_ONE(F)                                                                                           \
  extern "C" __device__ float ab_step_##F(float x, float y, float u, float v, float p0, float p1, float p2, \
                                          float p3) {                                                       \
    return step(StepCode::k##F, x, y, u, v, p0, p1, p2, p3);                                                \
  }
#define AB_NAMED(name, F) AB_ONE(F)
#define AB_OF_ONE(name, F) AB_ONE(F##Grad)
#define AB_OF_TWO(name, F) AB_ONE(F##Dx) AB_ONE(F##Dy)
AB_STEP_CODES(AB_ONE, AB_NAMED, AB_OF_ONE, AB_OF_TWO)

// The element of an input for element i of the results.
extern "C" __device__ int64_t ab_step_place(int64_t i, int64_t repeat, int64_t period) {
  return period == 0 ? i : device::remainder(device::quotient(i, repeat), period);
}

// 16-bit floats as the low bits of an integer, from and to float; and the remainder of such a conversion.
#define AB_NARROW(name, T)                                                            \
  extern "C" __device__ float ab_step_widen_##name(uint32_t bits) {                   \
    T x;                                                                              \
    x.bits = static_cast<uint16_t>(bits);                                             \
    return static_cast<float>(x);                                                     \
  }                                                                                   \
  extern "C" __device__ uint32_t ab_step_narrow_##name(float x) { return T(x).bits; } \
  extern "C" __device__ float ab_step_round_##name(float x) { return static_cast<float>(T(x)); }
AB_NARROW(f16, device::half)
AB_NARROW(bf16, device::bfloat16)

}  // namespace anabranch::math
