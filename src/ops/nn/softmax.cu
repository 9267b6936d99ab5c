// Softmax and its logarithm over one axis on devices: "softmax", "log_softmax", with "_grad". Outputs may alias inputs.
#include "ops/device/row_in_lanes.h"
#include "ops/nn/class_line.h"

namespace anabranch::device {

// Short contiguous rows are held in registers, by the body that held(share) makes; others are read several times.
template <class T, class Held, class Body, class... In>
int by_lines(const Launch& launch, const ClassArgs& a, const Held& held, const Body& body, const In*... in) {
  const int64_t n = a.outer * a.inner;
  const auto by_rows = [&] { return rows(launch, n, a.classes, body); };
  if (a.inner != 1) return by_rows();
  return by_share<T>(
      a.classes, [&](auto share) { return rows_by_warps(launch, n, held(share)); }, by_rows, in...);
}

// NaN makes the sum NaN, so the maximum need not be.
struct LargerOf {
  template <class P> AB_HD P operator()(P a, P b) const { return std::fmax(a, b); }
};

// The type of sums over held rows: results rounded to 16 bits need no more than float, and multiplication by a
// reciprocal suffices where float divides.
template <class T> using SumOfPowers = std::conditional_t<sizeof(T) == 2, float, double>;
template <class T> AB_HD Compute<T> share_of(Compute<T> power, Compute<T> sum, Compute<T> inverse) {
  return sizeof(T) == 2 ? power * inverse : power / sum;
}

template <bool kLog> struct Softmax {
  using Args = ClassArgs;
  template <class T> struct Body {
    ClassLine line;
    const T* x;
    T* y;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      const int64_t first = line.begin(sample);
      Compute<T> sum;
      const Norm<Compute<T>> norm = line.norm(lanes, x + first, &sum);
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        const Compute<T> v = load(x[at]);
        store(y + at, kLog ? norm.log_softmax(v) : std::exp(shifted(v, norm.top)) / sum);
      }
    }
  };
  template <class T, class Share> struct OfHeld {
    Share share;
    const T* x;
    T* y;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      using P = Compute<T>;
      const int64_t begin = row * share.width;
      typename Share::template Held<T> v;
      v.read(lanes, share, x + begin);
      P top = -std::numeric_limits<P>::infinity();
      share.elements(lanes, [&](int k, int e) { top = LargerOf{}(v(k, e), top); });
      top = lanes.fold(top, LargerOf{});
      typename Share::template Of<P> powers;
      SumOfPowers<T> total = 0;
      share.elements(lanes, [&](int k, int e) {
        powers.at[k][e] = std::exp(shifted(v(k, e), top));
        total += static_cast<SumOfPowers<T>>(powers.at[k][e]);
      });
      const auto sum = static_cast<P>(lanes.sum(total));
      const P inverse = 1 / sum;
      const Norm<P> norm{top, std::log(sum)};
      share.write(lanes, y + begin, [&](int k, int e) {
        return kLog ? norm.log_softmax(v(k, e)) : share_of<T>(powers.at[k][e], sum, inverse);
      });
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T* x = a.x.get<T>();
    T* y = a.y.get<T>();
    return by_lines<T>(
        launch, a,
        [&](auto share) {
          return OfHeld<T, decltype(share)>{share, x, y};
        },
        Body<T>{ClassLine(a), x, y}, x, y);
  }
};

// x: the softmax, or its logarithm. dx = y (dy - sum y dy), or dy - exp(y) sum dy.
template <bool kLog> struct SoftmaxGrad {
  using Args = ClassArgs;
  template <class P> AB_HD static double term(P y, P dy) { return static_cast<double>(kLog ? dy : y * dy); }
  template <class P> AB_HD static P slope(P y, P dy, P sum) { return kLog ? dy - std::exp(y) * sum : y * (dy - sum); }
  template <class T> struct Body {
    ClassLine line;
    const T *y, *dy;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t sample) const {
      const int64_t first = line.begin(sample);
      double total = 0;
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        total += term(load(y[at]), load(dy[at]));
      }
      const auto sum = static_cast<Compute<T>>(lanes.sum(total));
      for (int64_t k = lanes.index(); k < line.classes; k += lanes.count()) {
        const int64_t at = first + k * line.inner;
        store(dx + at, slope(load(y[at]), load(dy[at]), sum));
      }
    }
  };
  template <class T, class Share> struct OfHeld {
    Share share;
    const T *y, *dy;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const int64_t begin = row * share.width;
      typename Share::template Held<T> own, d;
      own.read(lanes, share, y + begin);
      d.read(lanes, share, dy + begin);
      double total = 0;
      share.elements(lanes, [&](int k, int e) { total += term(own(k, e), d(k, e)); });
      const auto sum = static_cast<Compute<T>>(lanes.sum(total));
      share.write(lanes, dx + begin, [&](int k, int e) { return slope(own(k, e), d(k, e), sum); });
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *y = a.x.get<T>(), *dy = a.dy.get<T>();
    T* dx = a.y.get<T>();
    return by_lines<T>(
        launch, a,
        [&](auto share) {
          return OfHeld<T, decltype(share)>{share, y, dy, dx};
        },
        Body<T>{ClassLine(a), y, dy, dx}, y, dy, dx);
  }
};

AB_KERNEL("softmax", Softmax<false>, float, double, half, bfloat16);
AB_KERNEL("log_softmax", Softmax<true>, float, double, half, bfloat16);
AB_KERNEL("softmax_grad", SoftmaxGrad<false>, float, double, half, bfloat16);
AB_KERNEL("log_softmax_grad", SoftmaxGrad<true>, float, double, half, bfloat16);

}  // namespace anabranch::device
