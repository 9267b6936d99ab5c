#include "ops/kernels/simd_gradients.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/kernels/simd_gradients.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "ops/kernels/simd_functions-inl.h"
#include "ops/kernels/simd_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::simd {
namespace HWY_NAMESPACE {

// 1 - tanh(x)^2 = 4 e / (1 + e)^2 with e = e^(-2 |x|): the difference would lose its digits where tanh is near 1.
HWY_INLINE V tanh_slope(D d, V x) {
  const V e = exp_of(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.0f))), sum = hn::Add(hn::Set(d, 1.0f), e);
  return hn::Div(hn::Mul(hn::Set(d, 4.0f), e), hn::Mul(sum, sum));
}

// Function(x, dy, dx, n) is dy times `slope` of each vector v.
#define AB_SLOPE(Function, slope)                                            \
  void Function(const float* x, const float* dy, float* dx, int64_t n) {     \
    const D d;                                                               \
    loop(                                                                    \
        dx, n, [d](V v, V g) HWY_ATTR { return hn::Mul(g, slope); }, x, dy); \
  }

AB_SLOPE(SinGrad, cos_of(d, v))
AB_SLOPE(CosGrad, hn::Neg(sin_of(d, v)))
AB_SLOPE(LogsigmoidGrad, sigmoid_of(d, hn::Neg(v)))

void TanhShrinkGrad(const float* x, const float* dy, float* dx, int64_t n) {
  const D d;
  loop(
      dx, n,
      [d](V v, V g) HWY_ATTR {
        const V t = tanh_of(d, v);
        return hn::Mul(hn::Mul(g, t), t);
      },
      x, dy);
}
void StanhGrad(const float* x, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]), b = hn::Set(d, p[1]);
  loop(
      dx, n, [=](V v, V g) HWY_ATTR { return hn::Mul(hn::Mul(hn::Mul(g, a), b), tanh_slope(d, hn::Mul(a, v))); }, x,
      dy);
}
void LeakyReluGrad(const float* y, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const bool swapped = p[0] > 1;
  const V above = hn::Set(d, swapped ? p[0] : 1.0f), below = hn::Set(d, swapped ? 1.0f : p[0]), zero = hn::Zero(d);
  loop(
      dx, n, [=](V v, V g) HWY_ATTR { return hn::Mul(g, hn::IfThenElse(hn::Gt(v, zero), above, below)); }, y, dy);
}
void EluGrad(const float* x, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const V a = hn::Set(d, p[0]), zero = hn::Zero(d);
  loop(
      dx, n,
      [=](V v, V g) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, zero), g, hn::Mul(hn::Mul(g, a), exp_of(d, v))); }, x,
      dy);
}
// The factor b x is cut off, so that it stays finite where s or 1 - s is 0.
void SwishGrad(const float* x, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const V b = hn::Set(d, p[0]), one = hn::Set(d, 1.0f), far = hn::Set(d, 1e6f);
  loop(
      dx, n,
      [=](V v, V g) HWY_ATTR {
        const V in = hn::Mul(b, v), s = sigmoid_of(d, in), near = hn::Max(hn::Min(in, far), hn::Neg(far));
        return hn::Mul(g, hn::Add(s, hn::Mul(hn::Mul(near, s), hn::Sub(one, s))));
      },
      x, dy);
}
// Without a clipping threshold, t = m / (m + 2) with e = e^x, m = e (e + 2), so that (1 - t^2) sigmoid(x) is
// 4 e (1 + e) / (m + 2)^2. From the bound on, t is 1 and the rest 0; e^4 stays finite.
void MishGrad(const float* x, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  constexpr float kFar = 20.0f;
  const V limit = hn::Set(d, p[0]), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f), four = hn::Set(d, 4.0f),
          far = hn::Set(d, kFar);
  if (!(p[0] > 0) || p[0] >= kFar) {
    return loop(
        dx, n,
        [=](V v, V g) HWY_ATTR {
          const V e = exp_of(d, hn::Min(v, far)), m = hn::Mul(e, hn::Add(e, two)), low = hn::Add(m, two);
          const V bend = hn::Div(hn::Mul(four, hn::Mul(e, hn::Add(one, e))), hn::Mul(low, low));
          return keep_nan(d, v, hn::Mul(g, hn::Add(hn::Div(m, low), hn::Mul(v, bend))));
        },
        x, dy);
  }
  loop(
      dx, n,
      [=](V v, V g) HWY_ATTR {
        const V beyond = hn::IfThenElse(hn::Gt(v, limit), v, exp_of(d, v));
        const V s = hn::IfThenElse(hn::Gt(hn::Abs(v), limit), beyond, softplus_of(d, v));
        const V bend = hn::Mul(tanh_slope(d, s), expm1_of(d, hn::Neg(s)));
        return hn::Mul(g, hn::Sub(tanh_of(d, s), hn::Mul(v, bend)));
      },
      x, dy);
}
// 0 outside the thresholds: a product, so that NaN in y or dy propagates.
void SoftReluGrad(const float* y, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const V high = hn::Set(d, p[0]), low = hn::Set(d, -p[0]), one = hn::Set(d, 1.0f);
  loop(
      dx, n,
      [=](V v, V g) HWY_ATTR {
        const V moves = hn::IfThenElseZero(hn::And(hn::Gt(v, low), hn::Lt(v, high)), one);
        return hn::Mul(hn::Mul(hn::Neg(g), expm1_of(d, hn::Neg(v))), moves);
      },
      y, dy);
}
// Far out, where the slope of tanh is 0, the other factors are cut off before they overflow.
void TanhGeluGrad(const float* x, const float* dy, const float* p, float* dx, int64_t n) {
  const D d;
  const V scale = hn::Set(d, p[0]), cubic = hn::Set(d, p[1]), half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f),
          three = hn::Set(d, 3.0f), far = hn::Set(d, 1e6f);
  loop(
      dx, n,
      [=](V v, V g) HWY_ATTR {
        const V near = keep_nan(d, v, hn::Max(hn::Min(v, far), hn::Neg(far)));
        const V square = hn::Mul(near, hn::Mul(cubic, near));
        const V in = hn::Mul(scale, hn::Add(near, hn::Mul(near, square)));
        const V slope = hn::Mul(scale, hn::Add(one, hn::Mul(three, square)));
        const V bend = hn::Mul(hn::Mul(near, tanh_slope(d, in)), slope);
        return hn::Mul(hn::Mul(g, half), hn::Add(hn::Add(one, tanh_of(d, in)), bend));
      },
      x, dy);
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::simd {

#define AB_SIMD_GRAD(function, Function) \
  HWY_EXPORT(Function);                  \
  void function(const float* x, const float* dy, float* dx, int64_t n) { HWY_DYNAMIC_DISPATCH(Function)(x, dy, dx, n); }
#define AB_SIMD_PARAM_GRAD(function, Function)                                           \
  HWY_EXPORT(Function);                                                                  \
  void function(const float* x, const float* dy, const float* p, float* dx, int64_t n) { \
    HWY_DYNAMIC_DISPATCH(Function)(x, dy, p, dx, n);                                     \
  }

AB_SIMD_GRAD(sin_grad, SinGrad)
AB_SIMD_GRAD(cos_grad, CosGrad)
AB_SIMD_GRAD(logsigmoid_grad, LogsigmoidGrad)
AB_SIMD_GRAD(tanh_shrink_grad, TanhShrinkGrad)
AB_SIMD_PARAM_GRAD(stanh_grad, StanhGrad)
AB_SIMD_PARAM_GRAD(leaky_relu_grad, LeakyReluGrad)
AB_SIMD_PARAM_GRAD(elu_grad, EluGrad)
AB_SIMD_PARAM_GRAD(swish_grad, SwishGrad)
AB_SIMD_PARAM_GRAD(mish_grad, MishGrad)
AB_SIMD_PARAM_GRAD(soft_relu_grad, SoftReluGrad)
AB_SIMD_PARAM_GRAD(tanh_gelu_grad, TanhGeluGrad)

}  // namespace anabranch::simd
#endif  // HWY_ONCE
