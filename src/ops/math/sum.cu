// Sums of several tensors of one shape on devices: "sum".
#include "ops/device/args_math.h"
#include "ops/device/pack.h"

namespace anabranch::device {

// For more than kMostSummands tensors: several launches, with y as the first operand of the next.
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
  // Eight 16-bit numbers at a time. Loads of kAtOnce operands are in flight together, for any number of operands.
  template <class T> struct Packs {
    using P = Pack<T, 8>;
    static constexpr int kAtOnce = 4;
    const P* x[kMostSummands];
    P* y;
    int32_t count;
    AB_HD void operator()(int64_t i) const {
      Compute<T> sum[8] = {};
      for (int first = 0; first < count; first += kAtOnce) {
        P in[kAtOnce] = {};
        for (int k = 0; k < kAtOnce; ++k) {
          if (first + k < count) in[k] = x[first + k][i];
        }
        for (int k = 0; k < kAtOnce; ++k) {
          if (first + k < count) add(first + k == 0, in[k], sum);
        }
      }
      P out;
      for (int e = 0; e < 8; ++e) store(&out.at[e], sum[e]);
      y[i] = out;
    }
    AB_HD static void add(bool starts, const P& p, Compute<T>* sum) {
      for (int e = 0; e < 8; ++e) sum[e] = starts ? load(p.at[e]) : sum[e] + load(p.at[e]);
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
    if constexpr (sizeof(T) == 2) {
      if (fits_packs(a.n, body)) return by_packs(launch, a.n, body);
    }
    return each(launch, a.n, body);
  }

 private:
  template <class T> static bool fits_packs(int64_t n, const Body<T>& body) {
    using P = typename Packs<T>::P;
    bool wide = n % 8 == 0 && n >= kManyElements && packed<P>(body.y);
    for (int k = 0; k < body.count; ++k) wide = wide && packed<P>(body.x[k]);
    return wide;
  }
  template <class T> static int by_packs(const Launch& launch, int64_t n, const Body<T>& body) {
    using P = typename Packs<T>::P;
    Packs<T> packs = {};
    for (int k = 0; k < body.count; ++k) packs.x[k] = reinterpret_cast<const P*>(body.x[k]);
    packs.y = reinterpret_cast<P*>(body.y);
    packs.count = body.count;
    return each(launch, n / 8, packs);
  }
};

AB_KERNEL("sum", Sum, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
