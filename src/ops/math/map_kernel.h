// Kernels of unary functions and of their gradients, for the structs of activation_functions.h.
#pragma once
#include "ops/device/pack.h"

namespace anabranch::device {

// The attributes, in the type of the computation.
template <class T> struct Numbers {
  Compute<T> p[kMaxNumbers];
  explicit Numbers(const double (&from)[kMaxNumbers]) {
    for (int k = 0; k < kMaxNumbers; ++k) p[k] = static_cast<Compute<T>>(from[k]);
  }
};

// y[i] = F::forward(x[i], p); y may alias x.
template <class F> struct Map {
  using Args = MapArgs;
  template <class T> struct Of {
    Numbers<T> numbers;
    AB_HD Compute<T> operator()(Compute<T> x) const { return F::forward(x, numbers.p); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each_dense<T, 1>(launch, a.n, {a.x.get<T>()}, a.y.get<T>(), Of<T>{Numbers<T>(a.p)});
  }
};

// dx[i] = F::backward(v[i], dy[i], p), where v is x or y, whichever is given; dx may alias any of them.
template <class F> struct MapGrad {
  using Args = MapGradArgs;
  template <class T> struct Of {
    Numbers<T> numbers;
    AB_HD Compute<T> operator()(Compute<T> v, Compute<T> dy) const { return F::backward(v, dy, numbers.p); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const DeviceIn v = a.x.there() ? a.x : a.y.there() ? a.y : a.dy;
    return each_dense<T, 2>(launch, a.n, {v.get<T>(), a.dy.get<T>()}, a.dx.get<T>(), Of<T>{Numbers<T>(a.p)});
  }
};

}  // namespace anabranch::device

// The function and its gradient, for all floating-point types.
#define AB_MAP(name, F)                                                                                  \
  AB_KERNEL("map/" name, ::anabranch::device::Map<F>, float, double, ::anabranch::device::half,          \
            ::anabranch::device::bfloat16);                                                              \
  AB_KERNEL("map_grad/" name, ::anabranch::device::MapGrad<F>, float, double, ::anabranch::device::half, \
            ::anabranch::device::bfloat16)
