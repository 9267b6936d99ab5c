// Pairs of rows on devices: "dot", "cos_sim" and "cross", with "_grad" ("cross" computes its gradient, too: dx = y x
// dout, dy = dout x x).
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"
#include "ops/kernels/folds.h"
#include "ops/math/arithmetic_functions.h"

namespace anabranch::device {

struct WrappingAdd {
  template <class W> AB_HD W operator()(W a, W b) const { return FoldSum<W>::join(a, b); }
};

template <class T> using PairWide = typename FoldSum<Compute<T>>::Wide;

template <class T, class L> AB_HD PairWide<T> product_sum(const L& lanes, const T* x, const T* y, int64_t width) {
  PairWide<T> sum = 0;
  for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
    sum = FoldSum<Compute<T>>::join(sum, static_cast<PairWide<T>>(math::wrapping_product(load(x[i]), load(y[i]))));
  }
  return lanes.fold(sum, WrappingAdd{});
}

struct Dot {
  using Args = PairArgs;
  template <class T> struct Body {
    const T *x, *y;
    T* out;
    int64_t width;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const auto sum = product_sum(lanes, x + row * width, y + row * width, width);
      if (lanes.index() == 0) store(out + row, static_cast<Compute<T>>(sum));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width, Body<T>{a.x.get<T>(), a.y.get<T>(), a.out.get<T>(), a.width});
  }
};

struct DotGrad {  // out: dx, x_norm: dy
  using Args = PairArgs;
  template <class T> struct Body {
    const T *x, *y, *dout;
    T *dx, *dy;
    int64_t width;
    AB_HD void operator()(int64_t i) const {
      const Compute<T> d = load(dout[i / width]), a = load(x[i]), b = load(y[i]);
      if (dx) store(dx + i, d * b);
      if (dy) store(dy + i, d * a);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width,
                Body<T>{a.x.get<T>(), a.y.get<T>(), a.dout.get<T>(), a.out.get<T>(), a.x_norm.get<T>(), a.width});
  }
};

inline constexpr double kShortest = 1e-4;  // lower bound of the length of a row, which is a divisor

struct CosSim {
  using Args = PairArgs;
  template <class T> struct Body {
    const T *x, *y;
    T *out, *x_norm, *y_norm;
    int64_t width, step;  // 0: y is one row for all
    template <class L> AB_HD Compute<T> length(const L& lanes, const T* row) const {
      const auto size = static_cast<Compute<T>>(std::sqrt(product_sum(lanes, row, row, width)));
      return size > static_cast<Compute<T>>(kShortest) ? size : static_cast<Compute<T>>(kShortest);
    }
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const T *p = x + row * width, *q = y + step * row * width;
      const auto dot = static_cast<Compute<T>>(product_sum(lanes, p, q, width));
      const Compute<T> a = length(lanes, p), b = length(lanes, q);
      if (lanes.index() != 0) return;
      store(out + row, dot / a / b);
      store(x_norm + row, a);
      if (step || row == 0) store(y_norm + row, b);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.rows, a.width,
                Body<T>{a.x.get<T>(), a.y.get<T>(), a.out.get<T>(), a.x_norm.get<T>(), a.y_norm.get<T>(), a.width,
                        a.flags & 1 ? 0 : 1});
  }
};

// d cos / d x = y / (|x| |y|) - cos x / |x|^2. out: dx, x_norm: dy.
struct CosSimGrad {
  using Args = PairArgs;
  template <class T> struct Slopes {
    using C = Compute<T>;
    const T *x, *y, *cosine, *x_norm, *y_norm, *dout;
    int64_t width, step;
    explicit Slopes(const Args& a)
        : x(a.x.get<T>()),
          y(a.y.get<T>()),
          cosine(a.out_in.get<T>()),
          x_norm(a.x_norm_in.get<T>()),
          y_norm(a.y_norm_in.get<T>()),
          dout(a.dout.get<T>()),
          width(a.width),
          step(a.flags & 1 ? 0 : 1) {}
    AB_HD C at(int64_t row, int64_t column, bool of_x) const {
      const C a = load(x[row * width + column]), b = load(y[step * row * width + column]);
      const C na = load(x_norm[row]), nb = load(y_norm[step * row]), own_norm = of_x ? na : nb;
      const C across = load(dout[row]) / (na * nb), along = load(dout[row]) * load(cosine[row]) / (own_norm * own_norm);
      return of_x ? across * b - along * a : across * a - along * b;
    }
  };
  template <class T> struct Each {
    Slopes<T> slopes;
    T* to;
    bool of_x;
    AB_HD void operator()(int64_t i) const { store(to + i, slopes.at(i / slopes.width, i % slopes.width, of_x)); }
  };
  template <class T> struct OneRow {  // of y, for all rows of x
    using Wide = double;
    Slopes<T> slopes;
    T* to;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t column, int64_t row) const { return static_cast<double>(slopes.at(row, column, false)); }
    AB_HD void put(int64_t column, Wide total) const { store(to + column, static_cast<Compute<T>>(total)); }
  };
  template <class T> static size_t room(const Args& a) {
    return a.flags & 1 ? fold_room<double>(a.width, a.rows, Neighbors::kRows) : 0;
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Slopes<T> slopes(a);
    if (a.out.there()) {
      const Each<T> of_x{slopes, a.out.get<T>(), true};
      if (const int failed = each(launch, a.rows * a.width, of_x)) return failed;
    }
    if (!a.x_norm.there()) return 0;
    if (slopes.step) return each(launch, a.rows * a.width, Each<T>{slopes, a.x_norm.get<T>(), false});
    return fold_rows(launch, a.width, a.rows, Neighbors::kRows, OneRow<T>{slopes, a.x_norm.get<T>()},
                     launch.workspace.get<double>());
  }
};

// out = x x y of 3-vectors whose elements are `width` apart. rows: number of blocks of 3 width elements.
struct Cross {
  using Args = PairArgs;
  template <class T> struct Body {
    const T *x, *y;
    T* out;
    int64_t inner;
    AB_HD void operator()(int64_t i) const {
      using C = Compute<T>;
      const int64_t at = i / inner * 3 * inner + i % inner;
      C a[3], b[3];
      for (int k = 0; k < 3; ++k) a[k] = load(x[at + k * inner]), b[k] = load(y[at + k * inner]);
      for (int k = 0; k < 3; ++k) {
        const int m = (k + 1) % 3, n = (k + 2) % 3;
        store(out + at + k * inner,
              math::wrapping_difference(math::wrapping_product(a[m], b[n]), math::wrapping_product(a[n], b[m])));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width, Body<T>{a.x.get<T>(), a.y.get<T>(), a.out.get<T>(), a.width});
  }
};

AB_KERNEL("dot", Dot, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("dot_grad", DotGrad, float, double, half, bfloat16);
AB_KERNEL("cos_sim", CosSim, float, double, half, bfloat16);
AB_KERNEL("cos_sim_grad", CosSimGrad, float, double, half, bfloat16);
AB_KERNEL("cross", Cross, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
