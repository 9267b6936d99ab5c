// Binary arithmetic with broadcasting on devices: "binary/<op>".
#include "ops/device/args_math.h"
#include "ops/device/pack.h"
#include "ops/device/walk.h"
#include "ops/math/arithmetic_functions.h"

namespace anabranch::device {

// out = F::of(x, y), over strides.
template <class F> struct Binary {
  using Args = BinaryArgs;
  template <class T> struct Body {
    Walk<3> walk;
    const T *x, *y;
    T* out;
    AB_HD void operator()(int64_t i) const {
      int64_t at[3];
      walk.at(i, at);
      store(out + at[0], F::of(load(x[at[1]]), load(y[at[2]])));
    }
  };
  template <class T> struct Line {  // of at most one axis
    int64_t step[3];
    const T *x, *y;
    T* out;
    AB_HD void operator()(int64_t i) const {
      store(out + i * step[0], F::of(load(x[i * step[1]]), load(y[i * step[2]])));
    }
  };
  template <class T> struct Of {
    AB_HD Compute<T> operator()(Compute<T> x, Compute<T> y) const { return F::of(x, y); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *y = a.y.get<T>();
    T* out = a.out.get<T>();
    const auto dense = [&](int k) { return a.axes.rank == 1 && a.axes.stride[k][0] == 1; };
    if (sizeof(T) == 2 && dense(0) && dense(1) && dense(2))
      return each_dense<T, 2>(launch, a.axes.count(), {x, y}, out, Of<T>{});
    if (a.axes.rank <= 1) {
      const Line<T> line{{a.axes.stride[0][0], a.axes.stride[1][0], a.axes.stride[2][0]}, x, y, out};
      return each(launch, a.axes.count(), line);
    }
    const Walk<3> walk(a.axes);
    return each(launch, walk.count(), Body<T>{walk, x, y, out});
  }
};

// For integers with y = 0: reports the division (code 1, detail: the element of the result) and returns 0.
template <class F> struct IntegerDivision {
  using Args = CheckedBinaryArgs;
  template <class T> struct Body {
    Walk<3> walk;
    const T *x, *y;
    T* out;
    FaultReport report;
    AB_HD void operator()(int64_t i) const {
      int64_t at[3];
      walk.at(i, at);
      const T by = y[at[2]];
      if (by == 0) report(1, i);
      out[at[0]] = by == 0 ? T(0) : F::of(x[at[1]], by);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Walk<3> walk(a.binary.axes);
    const Body<T> body{walk, a.binary.x.get<T>(), a.binary.y.get<T>(), a.binary.out.get<T>(), FaultReport(a.fault)};
    return each(launch, walk.count(), body);
  }
};

}  // namespace anabranch::device

namespace anabranch::math {

using device::bfloat16;
using device::Binary;
using device::half;
using device::IntegerDivision;

AB_KERNEL("binary/add", Binary<Add>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/sub", Binary<Sub>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/mul", Binary<Mul>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/div", Binary<Div>, float, double, half, bfloat16);
AB_KERNEL("binary/pow", Binary<Pow>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/max", Binary<Max>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/min", Binary<Min>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("binary/mod", Binary<Mod>, float, double, half, bfloat16);
AB_KERNEL("integer_division/div", IntegerDivision<Div>, int32_t, int64_t);
AB_KERNEL("integer_division/mod", IntegerDivision<Mod>, int32_t, int64_t);

}  // namespace anabranch::math
