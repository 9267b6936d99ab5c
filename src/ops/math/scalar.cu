// Elementwise ops with numbers that may be tensors, on devices: "scalar/<op>".
#include "ops/device/args_math.h"
#include "ops/device/kernels.h"
#include "ops/math/element_functions.h"

namespace anabranch::device {

// The numbers of a launch in a kernel body: those of the arguments, and where to read the others.
template <class T> struct Operands {
  const T *number, *low, *high;
  Compute<T> p[kMaxNumbers];
  int32_t flags;
  explicit Operands(const ScalarArgs& a)
      : number(a.number.get<T>()), low(a.bounds[0].get<T>()), high(a.bounds[1].get<T>()), flags(a.flags) {
    for (int k = 0; k < kMaxNumbers; ++k) {
      p[k] = std::is_integral_v<T> ? static_cast<Compute<T>>(a.whole[k]) : static_cast<Compute<T>>(a.p[k]);
    }
  }
  AB_HD Compute<T> first() const { return number ? load(*number) : p[0]; }
  AB_HD Compute<T> lower() const { return low ? load(*low) : p[0]; }
  AB_HD Compute<T> upper() const { return high ? load(*high) : p[1]; }
};

// p: scale, bias. flags 1: adds the bias after scaling.
struct Scale {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T>, const Operands<T>& o) {
    return math::Affine<Compute<T>>{o.first(), o.p[1], (o.flags & 1) != 0}(x);
  }
};
// p: factor; at least 0 for integers.
struct RaiseTo {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T>, const Operands<T>& o) {
    if constexpr (std::is_integral_v<T>)
      return math::whole_power(x, o.first());
    else
      return std::pow(x, o.first());
  }
};
struct RaiseToGrad {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T> dy, const Operands<T>& o) {
    return math::power_grad(x, dy, o.first());
  }
};
// p: min, max.
struct Clip {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T>, const Operands<T>& o) {
    return math::clipped(x, o.lower(), o.upper());
  }
};
struct ClipGrad {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T> dy, const Operands<T>& o) {
    return math::clipped_grad(x, dy, o.lower(), o.upper());
  }
};
// number: a norm; p[1]: the bound to which larger norms are scaled.
struct Shorten {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T>, const Operands<T>& o) {
    const Compute<T> norm = o.first(), bound = o.p[1];
    return norm > bound ? x * (bound / norm) : x;
  }
};
struct Sign {
  template <class T> AB_HD static Compute<T> of(Compute<T> x, Compute<T>, const Operands<T>&) {
    return math::sign_of(x);
  }
};
template <class F> struct Scalar {
  using Args = ScalarArgs;
  template <class T> struct Body {
    const T *x, *dy;
    T* y;
    Operands<T> operands;
    AB_HD void operator()(int64_t i) const {
      store(y + i, F::template of<T>(load(x[i]), dy ? load(dy[i]) : Compute<T>(0), operands));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.x.get<T>(), a.dy.get<T>(), a.y.get<T>(), Operands<T>(a)});
  }
};

AB_KERNEL("scalar/scale", Scalar<Scale>, float, double, half, bfloat16, int32_t, int64_t, int16_t, int8_t, uint8_t);
AB_KERNEL("scalar/pow", Scalar<RaiseTo>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("scalar/pow_grad", Scalar<RaiseToGrad>, float, double, half, bfloat16);
AB_KERNEL("scalar/clip", Scalar<Clip>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("scalar/clip_grad", Scalar<ClipGrad>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("scalar/shorten", Scalar<Shorten>, float, double, half, bfloat16);
AB_KERNEL("scalar/sign", Scalar<Sign>, float, double, half, bfloat16);

}  // namespace anabranch::device
