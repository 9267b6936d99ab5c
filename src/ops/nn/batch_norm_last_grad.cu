// Gradients with channels last, by the statistics of the batch: "batch_norm_last_grad", with a following relu
// "batch_norm_last_relu_grad", with a residual added before relu "batch_norm_last_add_relu_grad".
#include "ops/nn/batch_norm_last.h"

namespace anabranch::device {

template <class T> struct Normalized {
  const Compute<T>*used, *inverse;
  AB_HD void begin(int64_t channel, Compute<T>& base, Compute<T>& scale) const {
    base = used[channel];
    scale = inverse[channel];
  }
};

// Stores the sums of dy, and of dy times the normalized x, to the gradients and, for dx, to the workspace.
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

// relu's derivative in T: 1 where y, rounded, is above 0. Products with it propagate NaN.
template <class T> AB_HD Compute<T> slope_of_relu(Compute<T> y) {
  constexpr bool kHalf = std::is_same_v<T, half>, kBfloat16 = std::is_same_v<T, bfloat16>;
  constexpr double kRoundsToZero = kHalf       ? 0x1p-25
                                   : kBfloat16 ? 0x1p-134
                                               : 0;  // the largest number that rounds to zero
  return y > static_cast<Compute<T>>(kRoundsToZero) ? 1 : 0;
}

// Recomputes y instead of reading it from memory.
template <class T, int kPack> struct WhereXGivesMore {
  using P = Compute<T>;
  const P *scale, *bias, *used, *inverse;
  ChannelLine<P> line[kPack];
  AB_HD void begin(int64_t first) {
    for (int k = 0; k < kPack; ++k) {
      line[k].begin(scale[first + k], bias[first + k], used[first + k], inverse[first + k]);
    }
  }
  AB_HD void take(int64_t, Pack<T, kPack>&) {}
  AB_HD P operator()(int k, P x, P dy) const { return dy * slope_of_relu<T>(line[k].at(x)); }
};

template <class T, int kPack> struct WhereYIsMore {
  const T* y;
  Pack<T, kPack> here;
  AB_HD void begin(int64_t) {}
  AB_HD void take(int64_t at, Pack<T, kPack>&) { here = pack_at<T, kPack>(y, at); }
  AB_HD Compute<T> operator()(int k, Compute<T>, Compute<T> dy) const {
    return dy * slope_of_relu<T>(load(here.at[k]));
  }
};

// The same, and stores it to dz, too, the gradient of the residual. kMore: dy is the rounded sum with `more`.
template <class T, int kPack, bool kMore> struct SharedGradients {
  const T *y, *more;
  T* dz;
  AB_HD void begin(int64_t) {}
  AB_HD void take(int64_t at, Pack<T, kPack>& pg) {
    const Pack<T, kPack> py = pack_at<T, kPack>(y, at);
    if constexpr (kMore) {
      const Pack<T, kPack> pm = pack_at<T, kPack>(more, at);
      for (int k = 0; k < kPack; ++k) store(&pg.at[k], load(pg.at[k]) + load(pm.at[k]));
    }
    for (int k = 0; k < kPack; ++k) store(&pg.at[k], load(pg.at[k]) * slope_of_relu<T>(load(py.at[k])));
    store_pack(dz, at, pg);
  }
  AB_HD Compute<T> operator()(int, Compute<T>, Compute<T> dy) const { return dy; }
};

template <class T, int kPack, class Gradient> struct LastApplyGrad {
  using P = Compute<T>;
  LastLay lay;
  const T *x, *dy;
  const P *scale, *used, *inverse, *kept;
  T* dx;
  Gradient gradient;
  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, chunk = n / lay.packs;
    P mean[kPack], factor[kPack], mean_g[kPack], slope[kPack];
    for (int k = 0; k < kPack; ++k) {
      mean[k] = used[first + k];
      factor[k] = scale[first + k] * inverse[first + k];
      mean_g[k] = kept[first + k];
      slope[k] = kept[lay.channels + first + k] * inverse[first + k];
    }
    Gradient of = gradient;
    of.begin(first);
    AB_UNROLL for (int64_t row = lay.begin(chunk); row < lay.end(chunk); ++row) {
      const int64_t at = row * lay.channels + first;
      const Pack<T, kPack> px = pack_at<T, kPack>(x, at);
      Pack<T, kPack> pg = pack_at<T, kPack>(dy, at);
      of.take(at, pg);
      for (int k = 0; k < kPack; ++k) {
        const P value = load(px.at[k]), g = of(k, value, load(pg.at[k]));
        store(&pg.at[k], factor[k] * (g - mean_g[k] - (value - mean[k]) * slope[k]));
      }
      store_pack(dx, at, pg);
    }
  }
};

template <class T, int kPack> struct LastGrad {
  using P = Compute<T>;
  const Launch& launch;
  const BatchNormGradArgs& a;
  const T* x;
  T* dx;
  const P *used = a.used.get<P>(), *inverse = a.inverse.get<P>(), *scale = a.scale.get<P>();
  P* kept = launch.workspace.get<P>();

  template <class Gradient> int add_up(const T* dy, const Gradient& gradient) const {
    const LastLay lay(a.outer, a.channels, kPack, kSumThreads);
    P* parts = kept + 2 * a.channels;
    const LastSums<T, kPack, Normalized<T>, Gradient> sums{lay, x, dy, {used, inverse}, parts, gradient};
    if (const int failed = each(launch, lay.threads(), sums)) return failed;
    const LastGradients<P> gradients{{lay, parts}, a.dscale.get<P>(), a.dbias.get<P>(), kept};
    return rows(launch, a.channels, lay.chunks, gradients);
  }
  template <class Gradient> int apply(const T* dy, const Gradient& gradient) const {
    if (!dx) return 0;
    const LastLay whole(a.outer, a.channels, kPack, kApplyThreads);
    return each(launch, whole.threads(),
                LastApplyGrad<T, kPack, Gradient>{whole, x, dy, scale, used, inverse, kept, dx, gradient});
  }
  template <class Gradient> int both(const T* dy, const Gradient& gradient) const {
    const int failed = add_up(dy, gradient);
    return failed ? failed : apply(dy, gradient);
  }
};

template <After kAfter> struct BatchNormLastGrad {
  using Args = BatchNormGradArgs;
  template <class T> static size_t room(const Args& a) {
    return last_parts<T>(a.outer, a.channels) + static_cast<size_t>(2 * a.channels) * sizeof(Compute<T>);
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *dy = a.dy.get<T>(), *y = a.y.get<T>(), *more = a.more.get<T>();
    T *dx = a.dx.get<T>(), *dz = a.dz.get<T>();
    return by_packs<T>(a.channels, {x, dy, dx, y, more, dz}, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      const LastGrad<T, kPack> grad{launch, a, x, dx};
      if constexpr (kAfter == After::kNothing) {
        return grad.both(dy, WholeGradient<T, kPack>{});
      } else if constexpr (kAfter == After::kRelu) {
        const auto* bias = a.bias.get<Compute<T>>();
        if (!bias) return grad.both(dy, WhereYIsMore<T, kPack>{y, {}});
        return grad.both(dy, WhereXGivesMore<T, kPack>{grad.scale, bias, grad.used, grad.inverse, {}});
      } else {
        const int failed = more ? grad.add_up(dy, SharedGradients<T, kPack, true>{y, more, dz})
                                : grad.add_up(dy, SharedGradients<T, kPack, false>{y, more, dz});
        return failed ? failed : grad.apply(dz, WholeGradient<T, kPack>{});
      }
    });
  }
};

AB_KERNEL("batch_norm_last_grad", BatchNormLastGrad<After::kNothing>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_relu_grad", BatchNormLastGrad<After::kRelu>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_add_relu_grad", BatchNormLastGrad<After::kAddRelu>, float, double, half, bfloat16);

}  // namespace anabranch::device
