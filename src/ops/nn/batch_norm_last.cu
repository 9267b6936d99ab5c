// Batch normalization with channels last, by the statistics of the batch: "batch_norm_last", followed by relu
// "batch_norm_last_relu", with a residual added before relu "batch_norm_last_add_relu". Libraries take many times as
// long for that layout.
#include "ops/nn/batch_norm_last.h"

#include <cmath>

namespace anabranch::device {

// The first row is subtracted, so that squares of a large mean do not hide a small variance.
template <class T> struct FromFirstRow {
  const T* x;
  AB_HD void begin(int64_t channel, Compute<T>& base, Compute<T>& scale) const {
    base = load(x[channel]);
    scale = 1;
  }
};

template <class T> struct LastStatistics {
  using P = Compute<T>;
  LastParts<P> sums;
  const T* x;
  const P *mean, *variance;
  P *mean_out, *variance_out, *used, *inverse;
  double epsilon;
  P keep;
  template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
    double sum, squares;
    sums.joined(lanes, k, &sum, &squares);
    if (lanes.index() != 0) return;
    const auto count = static_cast<double>(sums.lay.rows);
    const double shifted = sum / count, spread = squares / count - shifted * shifted;
    const double deviation = spread > 0 || spread != spread ? spread : 0;
    used[k] = static_cast<P>(static_cast<double>(load(x[k])) + shifted);
    inverse[k] = static_cast<P>(1 / std::sqrt(deviation + epsilon));
    if (mean_out) mean_out[k] = mean[k] * keep + used[k] * (1 - keep);
    if (variance_out) variance_out[k] = variance[k] * keep + static_cast<P>(deviation) * (1 - keep);
  }
};

// The epilogue of the pack at this position of y, which is rounded.
template <class T, int kPack> struct AsItIs {
  AB_HD void operator()(int64_t, Pack<T, kPack>&) const {}
};

// A NaN is not below 0 and is kept.
template <class T, int kPack> struct CutOff {
  AB_HD void operator()(int64_t, Pack<T, kPack>& p) const {
    for (int k = 0; k < kPack; ++k) {
      if (load(p.at[k]) < 0) store(&p.at[k], Compute<T>{0});
    }
  }
};

// The input of relu is the rounded sum.
template <class T, int kPack> struct AddedAndCutOff {
  const T* z;
  AB_HD void operator()(int64_t at, Pack<T, kPack>& p) const {
    const Pack<T, kPack> added = pack_at<T, kPack>(z, at);
    for (int k = 0; k < kPack; ++k) store(&p.at[k], load(p.at[k]) + load(added.at[k]));
    CutOff<T, kPack>{}(at, p);
  }
};

template <class T, int kPack, class Then> struct LastApply {
  using P = Compute<T>;
  LastLay lay;
  const T* x;
  const P *scale, *bias, *used, *inverse;
  T* y;
  Then then;
  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, chunk = n / lay.packs;
    ChannelLine<P> line[kPack];
    for (int k = 0; k < kPack; ++k) {
      line[k].begin(scale[first + k], bias[first + k], used[first + k], inverse[first + k]);
    }
    AB_UNROLL for (int64_t row = lay.begin(chunk); row < lay.end(chunk); ++row) {
      const int64_t at = row * lay.channels + first;
      Pack<T, kPack> p = pack_at<T, kPack>(x, at);
      for (int k = 0; k < kPack; ++k) store(&p.at[k], line[k].at(load(p.at[k])));
      then(at, p);
      store_pack(y, at, p);
    }
  }
};

template <After kAfter> struct BatchNormLast {
  using Args = BatchNormArgs;
  template <class T> static size_t room(const Args& a) { return last_parts<T>(a.outer, a.channels); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *z = a.z.get<T>();
    T* y = a.y.get<T>();
    return by_packs<T>(a.channels, {x, y, z}, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      if constexpr (kAfter == After::kNothing) return run<T, kPack>(launch, a, x, y, AsItIs<T, kPack>{});
      if constexpr (kAfter == After::kRelu) return run<T, kPack>(launch, a, x, y, CutOff<T, kPack>{});
      if constexpr (kAfter == After::kAddRelu) return run<T, kPack>(launch, a, x, y, AddedAndCutOff<T, kPack>{z});
    });
  }

 private:
  template <class T, int kPack, class Then>
  static int run(const Launch& launch, const Args& a, const T* x, T* y, const Then& then) {
    using P = Compute<T>;
    const LastLay lay(a.outer, a.channels, kPack, kSumThreads);
    P* parts = launch.workspace.get<P>();
    P *used = a.used.get<P>(), *inverse = a.inverse.get<P>();
    const LastSums<T, kPack, FromFirstRow<T>> sums{lay, x, nullptr, {x}, parts};
    if (const int failed = each(launch, lay.threads(), sums)) return failed;
    const LastStatistics<T> statistics{
        {lay, parts}, x,       a.mean.get<P>(), a.variance.get<P>(),       a.mean_out.get<P>(), a.variance_out.get<P>(),
        used,         inverse, a.epsilon,       static_cast<P>(a.momentum)};
    if (const int failed = rows(launch, a.channels, lay.chunks, statistics)) return failed;
    const LastLay whole(a.outer, a.channels, kPack, kApplyThreads);
    return each(launch, whole.threads(),
                LastApply<T, kPack, Then>{whole, x, a.scale.get<P>(), a.bias.get<P>(), used, inverse, y, then});
  }
};

AB_KERNEL("batch_norm_last", BatchNormLast<After::kNothing>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_relu", BatchNormLast<After::kRelu>, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_add_relu", BatchNormLast<After::kAddRelu>, float, double, half, bfloat16);

}  // namespace anabranch::device
