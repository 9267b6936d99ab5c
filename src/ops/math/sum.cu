// Sums of several tensors of one shape on devices: "sum".
#include "ops/device/args_math.h"
#include "ops/device/pack.h"

namespace anabranch::device {

// Sums of more than kMostSummands tensors: as several launches, with y as the first operand of the next.
struct Sum {
  using Args = SumArgs;
  template <class T> struct Body {
    const T* x[kMostSummands];
    T* y;
    int32_t count;
    AB_HD void operator()(int64_t i) const {
      Compute<T> sum = load(x[0][i]);
      for (int k = 1; k < count; ++k) sum = static_cast<Compute<T>>(sum + load(x[k][i]));
      store(y + i, sum);
    }
  };
  template <class T> struct Add {
    AB_HD Compute<T> operator()(Compute<T> a, Compute<T> b) const { return static_cast<Compute<T>>(a + b); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.count == 2 && sizeof(T) == 2)
      return each_dense<T, 2>(launch, a.n, {a.x[0].get<T>(), a.x[1].get<T>()}, a.y.get<T>(), Add<T>{});
    Body<T> body = {};
    for (int k = 0; k < a.count; ++k) body.x[k] = a.x[k].get<T>();
    body.y = a.y.get<T>();
    body.count = a.count;
    return each(launch, a.n, body);
  }
};

AB_KERNEL("sum", Sum, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
