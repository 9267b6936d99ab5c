// Rectifiers with learned slopes, and maxima of neighboring channels, on devices: "prelu", "maxout", with "_grad".
#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {

struct Prelu {
  using Args = PreluArgs;
  template <class T> struct Body {
    const T *x, *alpha;
    T* y;
    int64_t alphas, inner;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> v = load(x[i]);
      store(y + i, v > 0 ? v : load(alpha[i / inner % alphas]) * v);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.alphas * a.inner,
                Body<T>{a.x.get<T>(), a.alpha.get<T>(), a.y.get<T>(), a.alphas, a.inner});
  }
};

// y: X@GRAD. Either gradient may be missing.
struct PreluGrad {
  using Args = PreluArgs;
  template <class T> struct OfX {
    const T *x, *alpha, *dy;
    T* dx;
    int64_t alphas, inner;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> d = load(dy[i]);
      store(dx + i, load(x[i]) > 0 ? d : load(alpha[i / inner % alphas]) * d);
    }
  };
  template <class T> struct OfAlpha {
    using Wide = double;
    const T *x, *dy;
    T* to;
    int64_t alphas, inner;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t k, int64_t i) const {
      const int64_t at = (i / inner * alphas + k) * inner + i % inner;
      const Compute<T> v = load(x[at]);
      return v > 0 ? 0 : static_cast<double>(v * load(dy[at]));
    }
    AB_HD void put(int64_t k, Wide total) const { store(to + k, static_cast<Compute<T>>(total)); }
  };
  static Neighbors neighbors(const Args& a) {
    return a.inner == 1 && a.alphas > 1 ? Neighbors::kRows : Neighbors::kElements;
  }
  template <class T> static size_t room(const Args& a) {
    return a.dalpha.there() ? fold_room<double>(a.alphas, a.outer * a.inner, neighbors(a)) : 0;
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *dy = a.dy.get<T>();
    if (a.y.there()) {
      const OfX<T> body{x, a.alpha.get<T>(), dy, a.y.get<T>(), a.alphas, a.inner};
      if (const int failed = each(launch, a.outer * a.alphas * a.inner, body)) return failed;
    }
    if (!a.dalpha.there()) return 0;
    return fold_rows(launch, a.alphas, a.outer * a.inner, neighbors(a),
                     OfAlpha<T>{x, dy, a.dalpha.get<T>(), a.alphas, a.inner}, launch.workspace.get<double>());
  }
};

// x as [outer, width, inner], y as [outer, inner]: NaN propagates.
struct Maxout {
  using Args = FoldArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t groups, inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t first = i / inner * groups * inner + i % inner;
      Compute<T> best = load(x[first]);
      for (int64_t g = 1; g < groups; ++g) {
        const Compute<T> value = load(x[first + g * inner]);
        best = value > best || value != value ? value : best;
      }
      store(y + i, best);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.inner, Body<T>{a.x.get<T>(), a.y.get<T>(), a.width, a.inner});
  }
};

// The first of equal maxima gets the gradient.
struct MaxoutGrad {
  using Args = MaxoutGradArgs;
  template <class T> struct Body {
    const T *x, *out, *dout;
    T* dx;
    int64_t groups, inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t first = i / inner * groups * inner + i % inner;
      const Compute<T> best = load(out[i]);
      bool found = false;
      for (int64_t g = 0; g < groups; ++g) {
        const bool here = !found && load(x[first + g * inner]) == best;
        store(dx + first + g * inner, here ? load(dout[i]) : Compute<T>(0));
        found = found || here;
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.inner,
                Body<T>{a.x.get<T>(), a.out.get<T>(), a.dout.get<T>(), a.dx.get<T>(), a.width, a.inner});
  }
};

AB_KERNEL("prelu", Prelu, float, double, half, bfloat16);
AB_KERNEL("prelu_grad", PreluGrad, float, double, half, bfloat16);
AB_KERNEL("maxout", Maxout, float, double, half, bfloat16);
AB_KERNEL("maxout_grad", MaxoutGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
