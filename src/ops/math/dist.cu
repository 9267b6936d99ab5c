// Norms on devices: "dist", for differences, "binary_grad/dist", and "p_norm" along lines, with "p_norm_grad".
#include "ops/device/args_fold.h"
#include "ops/math/binary_grad.h"
#include "ops/math/norm_functions.h"

namespace anabranch::device {

// out[0] = the norm of order p[0] of all differences x - y, broadcast.
struct Dist {
  using Args = BinaryArgs;
  // For a norm that joins by Join.
  template <class T, class Join> struct Body {
    using Wide = double;
    Walk<3> walk;
    const T *x, *y;
    T* out;
    math::NormOf norm;
    AB_HD static Wide start() { return Join::start(); }
    AB_HD static Wide join(Wide a, Wide b) { return Join::of(a, b); }
    AB_HD Wide at(int64_t, int64_t i) const {
      int64_t place[3];
      walk.at(i, place);
      return norm.term(std::abs(static_cast<double>(load(x[place[1]]) - load(y[place[2]]))));
    }
    AB_HD void put(int64_t, Wide total) const { store(out, static_cast<Compute<T>>(norm.result(total))); }
  };
  template <class Own> struct Joins {
    AB_HD static double start() { return Own::norm().start(); }
    AB_HD static double of(double a, double b) { return Own::norm().join(a, b); }
  };
  struct Sums : Joins<Sums> {
    AB_HD static math::NormOf norm() { return {1}; }
  };
  struct Highest : Joins<Highest> {
    AB_HD static math::NormOf norm() { return {std::numeric_limits<double>::infinity()}; }
  };
  struct Lowest : Joins<Lowest> {
    AB_HD static math::NormOf norm() { return {-std::numeric_limits<double>::infinity()}; }
  };
  template <class T> static size_t room(const Args& a) {
    return fold_room<double>(1, a.axes.count(), Neighbors::kElements);
  }
  template <class T, class Join> static int fold(const Launch& launch, const Args& a) {
    const Walk<3> walk(a.axes);
    return fold_rows(launch, 1, walk.count(), Neighbors::kElements,
                     Body<T, Join>{walk, a.x.get<T>(), a.y.get<T>(), a.out.get<T>(), {a.p[0]}},
                     launch.workspace.get<double>());
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const math::NormOf norm{a.p[0]};
    if (norm.highest()) return fold<T, Highest>(launch, a);
    return norm.lowest() ? fold<T, Lowest>(launch, a) : fold<T, Sums>(launch, a);
  }
};

// p[0]: the order. out and dout are scalars.
struct DistTerms {
  template <class T> AB_HD static T dx(T x, T y, T out, T d, const double* p) {
    const math::NormOf norm{p[0]};
    return static_cast<T>(norm.slope(static_cast<double>(x - y), static_cast<double>(out)) * static_cast<double>(d));
  }
  template <class T> AB_HD static T dy(T x, T y, T out, T d, const double* p) { return -dx(x, y, out, d, p); }
};

// y[line] = the norm of order p[0].
struct PNorm {
  using Args = NormArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t width, inner;
    math::NormOf norm;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const T* from = x + row / inner * width * inner + row % inner;
      double total = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
        total += norm.term(std::abs(static_cast<double>(load(from[i * inner]))));
      }
      total = lanes.sum(total);
      if (lanes.index() == 0) store(y + row, static_cast<Compute<T>>(norm.result(total)));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return rows(launch, a.outer * a.inner, a.width, Body<T>{a.x.get<T>(), a.y.get<T>(), a.width, a.inner, {a.p[0]}});
  }
};

// p: the order, and the number added to the denominator.
struct PNormGrad {
  using Args = NormArgs;
  template <class T> struct Body {
    const T *x, *norm, *dnorm;
    T* dx;
    int64_t width, inner;
    double power, epsilon;
    AB_HD void operator()(int64_t i) const {
      const int64_t line = i / inner / width * inner + i % inner;
      const double below = std::pow(static_cast<double>(load(norm[line])), power) + epsilon;
      const auto v = static_cast<double>(load(x[i]));
      const double slope = math::sign_or_nan(v) * std::pow(std::abs(v), power) / below;
      store(dx + i, static_cast<Compute<T>>(slope * static_cast<double>(load(dnorm[line]))));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(
        launch, a.outer * a.width * a.inner,
        Body<T>{a.x.get<T>(), a.length_in.get<T>(), a.dy.get<T>(), a.y.get<T>(), a.width, a.inner, a.p[0] - 1, a.p[1]});
  }
};

AB_KERNEL("dist", Dist, float, double, half, bfloat16);
AB_KERNEL("binary_grad/dist", BinaryGrad<DistTerms>, float, double, half, bfloat16);
AB_KERNEL("p_norm", PNorm, float, double, half, bfloat16);
AB_KERNEL("p_norm_grad", PNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
