// Channels of images on devices, as [outer, channels, inner]: "lrn" over neighboring channels, "affine_channel" with a
// scale and a bias per channel, with "_grad".
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {

// The neighbors of channel k, clipped at the ends.
struct ChannelWindow {
  int64_t channels, inner, n;
  explicit ChannelWindow(const LrnArgs& a) : channels(a.channels), inner(a.inner), n(a.n) {}
  // The sum of term(element) over the neighbors of element i.
  template <class T, class Term> AB_HD Compute<T> sum(int64_t i, Term term) const {
    const int64_t k = i / inner % channels, from = k - (n - 1) / 2;
    const int64_t first = from > 0 ? from : 0, end = from + n < channels ? from + n : channels;
    Compute<T> total = 0;
    for (int64_t j = first; j < end; ++j) total += term(i + (j - k) * inner);
    return total;
  }
};

template <class C> struct LrnRule {
  C k, alpha, beta;
  explicit LrnRule(const LrnArgs& a)
      : k(static_cast<C>(a.p[0])), alpha(static_cast<C>(a.p[1])), beta(static_cast<C>(a.p[2])) {}
};

struct Lrn {
  using Args = LrnArgs;
  template <class T> struct Body {
    ChannelWindow window;
    LrnRule<Compute<T>> rule;
    const T* x;
    T *y, *mid;
    AB_HD void operator()(int64_t i) const {
      const auto squares = window.template sum<T>(i, [&](int64_t at) { return load(x[at]) * load(x[at]); });
      const Compute<T> m = rule.k + rule.alpha * squares;
      store(mid + i, m);
      store(y + i, load(x[i]) * std::pow(m, -rule.beta));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.channels * a.inner,
                Body<T>{ChannelWindow(a), LrnRule<Compute<T>>(a), a.x.get<T>(), a.y.get<T>(), a.mid.get<T>()});
  }
};

struct LrnGrad {
  using Args = LrnArgs;
  template <class T> struct Body {
    ChannelWindow window;
    LrnRule<Compute<T>> rule;
    const T *x, *out, *mid, *dy;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const auto sum =
          window.template sum<T>(i, [&](int64_t at) { return load(out[at]) * load(dy[at]) / load(mid[at]); });
      store(dx + i, std::pow(load(mid[i]), -rule.beta) * load(dy[i]) - 2 * rule.alpha * rule.beta * load(x[i]) * sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.channels * a.inner,
                Body<T>{ChannelWindow(a), LrnRule<Compute<T>>(a), a.x.get<T>(), a.out.get<T>(), a.mid_in.get<T>(),
                        a.dy.get<T>(), a.y.get<T>()});
  }
};

struct AffineChannel {
  using Args = ChannelArgs;
  template <class T> struct Body {
    const T *x, *scale, *bias;
    T* y;
    int64_t channels, inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / inner % channels;
      store(y + i, load(x[i]) * load(scale[k]) + load(bias[k]));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.channels * a.inner,
                Body<T>{a.x.get<T>(), a.scale.get<T>(), a.bias.get<T>(), a.y.get<T>(), a.channels, a.inner});
  }
};

// y: X@GRAD. Each of the three gradients may be missing.
struct AffineChannelGrad {
  using Args = ChannelArgs;
  template <class T> struct OfX {
    const T *dy, *scale;
    T* dx;
    int64_t channels, inner;
    AB_HD void operator()(int64_t i) const { store(dx + i, load(dy[i]) * load(scale[i / inner % channels])); }
  };
  template <class T> struct Sums {  // of dy x, or of dy if x is null
    using Wide = double;
    const T *x, *dy;
    T* to;
    int64_t channels, inner;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t k, int64_t i) const {
      const int64_t at = (i / inner * channels + k) * inner + i % inner;
      return static_cast<double>(x ? load(dy[at]) * load(x[at]) : load(dy[at]));
    }
    AB_HD void put(int64_t k, Wide total) const { store(to + k, static_cast<Compute<T>>(total)); }
  };
  static Neighbors neighbors(const Args& a) { return a.inner == 1 ? Neighbors::kRows : Neighbors::kElements; }
  template <class T> static size_t room(const Args& a) {
    return fold_room<double>(a.channels, a.outer * a.inner, neighbors(a));
  }
  template <class T> static int sum(const Launch& launch, const Args& a, const T* x, const DeviceOut& to) {
    if (!to.there()) return 0;
    return fold_rows(launch, a.channels, a.outer * a.inner, neighbors(a),
                     Sums<T>{x, a.dy.get<T>(), to.get<T>(), a.channels, a.inner}, launch.workspace.get<double>());
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.y.there()) {
      const OfX<T> body{a.dy.get<T>(), a.scale.get<T>(), a.y.get<T>(), a.channels, a.inner};
      if (const int failed = each(launch, a.outer * a.channels * a.inner, body)) return failed;
    }
    if (const int failed = sum<T>(launch, a, a.x.get<T>(), a.dscale)) return failed;
    return sum<T>(launch, a, nullptr, a.dbias);
  }
};

AB_KERNEL("lrn", Lrn, float, double, half, bfloat16);
AB_KERNEL("lrn_grad", LrnGrad, float, double, half, bfloat16);
AB_KERNEL("affine_channel", AffineChannel, float, double, half, bfloat16);
AB_KERNEL("affine_channel_grad", AffineChannelGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
