// Gradients of channels that lie last, by the statistics of the batch: "batch_norm_last_grad", and with relu behind y
// "batch_norm_last_relu_grad".
#include "ops/nn/batch_norm_last.h"

namespace anabranch::device {

template <class T> struct Normalised {
  const Compute<T>*used, *inverse;
  AB_HD void begin(int64_t channel, Compute<T>& base, Compute<T>& scale) const {
    base = used[channel];
    scale = inverse[channel];
  }
};

// The sums of dy, and of dy times the normalised x, go to the gradients and, for dx, into the workspace.
template <class P> struct LastGradients {
  LastParts<P> sums;
  P *dscale, *dbias, *kept;
  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
    double sum, products;
    sums.joined(lanes, k, &sum, &products);
    if (lanes.index() != 0) return;
    if (dbias) dbias[k] = static_cast<P>(sum);
    if (dscale) dscale[k] = static_cast<P>(products);
    kept[k] = static_cast<P>(sum / static_cast<double>(sums.lay.rows));
    kept[sums.lay.channels + k] = static_cast<P>(products / static_cast<double>(sums.lay.rows));
  }
};

// relu's derivative in T: 1 where y, rounded, is above 0. Products with it hand a NaN on.
template <class T> AB_HD Compute<T> slope_of_relu(Compute<T> y) {
  constexpr bool kHalf = std::is_same_v<T, half>, kBfloat16 = std::is_same_v<T, bfloat16>;
  constexpr double kRoundsToZero = kHalf ? 0x1p-25 : kBfloat16 ? 0x1p-134 : 0;  // the largest number that does
  return y > static_cast<Compute<T>>(kRoundsToZero) ? 1 : 0;
}

// y is computed again: it takes no reading of memory.
template <class T, int kPack> struct WhereXGivesMore {
  using P = Compute<T>;
  const P *scale, *bias, *used, *inverse;
  ChannelLine<P> line[kPack];
  AB_HD void begin(int64_t first) {
    for (int k = 0; k < kPack; ++k) {
      line[k].begin(scale[first + k], bias[first + k], used[first + k], inverse[first + k]);
    }
  }
  AB_HD P operator()(int k, int64_t, P x, P dy) const { return dy * slope_of_relu<T>(line[k].at(x)); }
};

template <class T> struct WhereYIsMore {
  const T* y;
  AB_HD void begin(int64_t) {}
  AB_HD Compute<T> operator()(int k, int64_t at, Compute<T>, Compute<T> dy) const {
    return dy * slope_of_relu<T>(load(y[at + k]));
  }
};

template <class T, int kPack, class Gradient> struct LastApplyGrad {
  using P = Compute<T>;
  LastLay lay;
  const T *x, *dy;
  const P *scale, *used, *inverse, *kept;
  T* dx;
  Gradient gradient;
  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, piece = n / lay.packs;
    P mean[kPack], factor[kPack], mean_g[kPack], slope[kPack];
    for (int k = 0; k < kPack; ++k) {
      mean[k] = used[first + k];
      factor[k] = scale[first + k] * inverse[first + k];
      mean_g[k] = kept[first + k];
      slope[k] = kept[lay.channels + first + k] * inverse[first + k];
    }
    Gradient of = gradient;
    of.begin(first);
    AB_UNROLL for (int64_t row = lay.begin(piece); row < lay.end(piece); ++row) {
      const int64_t at = row * lay.channels + first;
      const auto px = *reinterpret_cast<const Pack<T, kPack>*>(x + at);
      auto pg = *reinterpret_cast<const Pack<T, kPack>*>(dy + at);
      for (int k = 0; k < kPack; ++k) {
        const P value = load(px.at[k]), g = of(k, at, value, load(pg.at[k]));
        store(&pg.at[k], factor[k] * (g - mean_g[k] - (value - mean[k]) * slope[k]));
      }
      *reinterpret_cast<Pack<T, kPack>*>(dx + at) = pg;
    }
  }
};

template <bool kRelu> struct BatchNormLastGrad {
  using Args = BatchNormGradArgs;
  template <class T> static size_t room(const Args& a) {
    return last_parts<T>(a.outer, a.channels) + static_cast<size_t>(2 * a.channels) * sizeof(Compute<T>);
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *dy = a.dy.get<T>();
    T* dx = a.dx.get<T>();
    return by_packs<T>(a.channels, {x, dy, dx},
                       [&](auto pack) { return with_relu<T, decltype(pack)::value>(launch, a, x, dy, dx); });
  }

 private:
  template <class T, int kPack>
  static int with_relu(const Launch& launch, const Args& a, const T* x, const T* dy, T* dx) {
    using P = Compute<T>;
    if constexpr (!kRelu) {
      return run<T, kPack>(launch, a, x, dy, dx, WholeGradient<T>{});
    } else if (a.bias.there()) {
      const WhereXGivesMore<T, kPack> relu{a.scale.get<P>(), a.bias.get<P>(), a.used.get<P>(), a.inverse.get<P>(), {}};
      return run<T, kPack>(launch, a, x, dy, dx, relu);
    } else {
      return run<T, kPack>(launch, a, x, dy, dx, WhereYIsMore<T>{a.y.get<T>()});
    }
  }
  template <class T, int kPack, class Gradient>
  static int run(const Launch& launch, const Args& a, const T* x, const T* dy, T* dx, const Gradient& gradient) {
    using P = Compute<T>;
    const LastLay lay(a.outer, a.channels, kPack, kSumThreads);
    P* kept = launch.workspace.get<P>();
    P* parts = kept + 2 * a.channels;
    const P *used = a.used.get<P>(), *inverse = a.inverse.get<P>();
    const LastSums<T, kPack, Normalised<T>, Gradient> sums{lay, x, dy, {used, inverse}, parts, gradient};
    if (const int failed = each(launch, lay.threads(), sums)) return failed;
    const LastGradients<P> gradients{{lay, parts}, a.dscale.get<P>(), a.dbias.get<P>(), kept};
    if (const int failed = rows(launch, a.channels, lay.pieces, gradients)) return failed;
    if (!dx) return 0;
    const LastLay whole(a.outer, a.channels, kPack, kApplyThreads);
    return each(launch, whole.threads(),
                LastApplyGrad<T, kPack, Gradient>{whole, x, dy, a.scale.get<P>(), used, inverse, kept, dx, gradient});
  }
};

using BatchNormLastGradPlain = BatchNormLastGrad<false>;
using BatchNormLastGradRelu = BatchNormLastGrad<true>;
AB_KERNEL("batch_norm_last_grad", BatchNormLastGradPlain, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_relu_grad", BatchNormLastGradRelu, float, double, half, bfloat16);

}  // namespace anabranch::device
