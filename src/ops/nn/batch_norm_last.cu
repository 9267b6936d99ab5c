// Normalisation of channels that lie last, by the statistics of the batch: "batch_norm_last", "batch_norm_last_grad".
// Libraries take many times as long for that layout. Threads that are neighbours take neighbouring channels, each a
// piece of the rows; what a piece adds up lies in the workspace until one group of lanes a channel joins the pieces.
#include <cmath>

#include "ops/device/args_library.h"
#include "ops/device/pack.h"

namespace anabranch::device {

// [rows, channels], cut into pieces of rows for packs of channels.
struct LastLay {
  int64_t rows, channels, packs, pieces, length;

  LastLay(int64_t rows, int64_t channels, int64_t pack, int64_t threads)
      : rows(rows), channels(channels), packs(channels / pack) {
    constexpr int64_t kLeast = 8;  // rows of a piece, for which it is worth to read what belongs to the channels
    const int64_t most = (rows + kLeast - 1) / kLeast;
    pieces = threads / packs;
    if (pieces > most) pieces = most;
    if (pieces < 1) pieces = 1;
    length = (rows + pieces - 1) / pieces;
  }
  AB_HD int64_t threads() const { return packs * pieces; }
  AB_HD int64_t begin(int64_t piece) const { return piece * length; }
  AB_HD int64_t end(int64_t piece) const { return begin(piece) + length < rows ? begin(piece) + length : rows; }
};

constexpr int64_t kSumThreads = 65536, kApplyThreads = 1048576;

template <class T> constexpr int kPackOf = static_cast<int>(16 / sizeof(T));

// Bytes of two sums of each channel and piece, [piece, 2, channels]: with packs there are more pieces.
template <class T> size_t last_parts(int64_t rows, int64_t channels) {
  const LastLay lay(rows, channels, channels % kPackOf<T> == 0 ? kPackOf<T> : 1, kSumThreads);
  return static_cast<size_t>(2 * lay.pieces * channels) * sizeof(Compute<T>);
}

// fn(std::integral_constant<int, elements of a pack>).
template <class T, class Fn> int by_packs(int64_t channels, std::initializer_list<const void*> tensors, Fn fn) {
  constexpr int kPack = kPackOf<T>;
  bool wide = channels % kPack == 0;
  for (const void* p : tensors) wide = wide && packed<Pack<T, kPack>>(p);
  return wide ? fn(std::integral_constant<int, kPack>{}) : fn(std::integral_constant<int, 1>{});
}

// Adds up what Term::add(k, x, dy, sums) makes of each element.
template <class T, int kPack, class Term> struct LastSums {
  using P = Compute<T>;
  LastLay lay;
  const T *x, *dy;  // dy: null where the term does not read it
  Term term;
  P* parts;

  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, piece = n / lay.packs;
    P base[kPack], scale[kPack], sums[2][kPack] = {};
    for (int k = 0; k < kPack; ++k) term.begin(first + k, base[k], scale[k]);
    AB_UNROLL for (int64_t row = lay.begin(piece); row < lay.end(piece); ++row) {
      const auto px = *reinterpret_cast<const Pack<T, kPack>*>(x + row * lay.channels + first);
      Pack<T, kPack> pg = px;
      if (dy) pg = *reinterpret_cast<const Pack<T, kPack>*>(dy + row * lay.channels + first);
      for (int k = 0; k < kPack; ++k) {
        const P d = (load(px.at[k]) - base[k]) * scale[k], g = dy ? load(pg.at[k]) : d;
        sums[0][k] += g;
        sums[1][k] += g * d;
      }
    }
    P* to = parts + piece * 2 * lay.channels + first;
    for (int k = 0; k < kPack; ++k) to[k] = sums[0][k];
    for (int k = 0; k < kPack; ++k) to[lay.channels + k] = sums[1][k];
  }
};

template <class P> struct LastParts {
  LastLay lay;
  const P* parts;
  template <class L> AB_HD void joined(const L& lanes, int64_t channel, double* first, double* second) const {
    double sums[2] = {};
    for (int64_t piece = lanes.index(); piece < lay.pieces; piece += lanes.count()) {
      const P* from = parts + piece * 2 * lay.channels + channel;
      sums[0] += static_cast<double>(from[0]);
      sums[1] += static_cast<double>(from[lay.channels]);
    }
    *first = lanes.sum(sums[0]);
    *second = lanes.sum(sums[1]);
  }
};

// ---- forward

// The first row is taken off, so that squares of a large mean do not hide a small variance.
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

template <class T, int kPack> struct LastApply {
  using P = Compute<T>;
  LastLay lay;
  const T* x;
  const P *scale, *bias, *used, *inverse;
  T* y;
  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, piece = n / lay.packs;
    P factor[kPack], offset[kPack];
    for (int k = 0; k < kPack; ++k) {
      factor[k] = scale[first + k] * inverse[first + k];
      offset[k] = bias[first + k] - used[first + k] * factor[k];
    }
    AB_UNROLL for (int64_t row = lay.begin(piece); row < lay.end(piece); ++row) {
      auto p = *reinterpret_cast<const Pack<T, kPack>*>(x + row * lay.channels + first);
      for (int k = 0; k < kPack; ++k) store(&p.at[k], load(p.at[k]) * factor[k] + offset[k]);
      *reinterpret_cast<Pack<T, kPack>*>(y + row * lay.channels + first) = p;
    }
  }
};

struct BatchNormLast {
  using Args = BatchNormArgs;
  template <class T> static size_t room(const Args& a) { return last_parts<T>(a.outer, a.channels); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T* x = a.x.get<T>();
    T* y = a.y.get<T>();
    return by_packs<T>(a.channels, {x, y}, [&](auto pack) { return run<T, decltype(pack)::value>(launch, a, x, y); });
  }

 private:
  template <class T, int kPack> static int run(const Launch& launch, const Args& a, const T* x, T* y) {
    using P = Compute<T>;
    const LastLay lay(a.outer, a.channels, kPack, kSumThreads);
    P* parts = launch.workspace.get<P>();
    P *used = a.used.get<P>(), *inverse = a.inverse.get<P>();
    const LastSums<T, kPack, FromFirstRow<T>> sums{lay, x, nullptr, {x}, parts};
    if (const int failed = each(launch, lay.threads(), sums)) return failed;
    const LastStatistics<T> statistics{
        {lay, parts}, x,       a.mean.get<P>(), a.variance.get<P>(),       a.mean_out.get<P>(), a.variance_out.get<P>(),
        used,         inverse, a.epsilon,       static_cast<P>(a.momentum)};
    if (const int failed = rows(launch, a.channels, lay.pieces, statistics)) return failed;
    const LastLay whole(a.outer, a.channels, kPack, kApplyThreads);
    return each(launch, whole.threads(),
                LastApply<T, kPack>{whole, x, a.scale.get<P>(), a.bias.get<P>(), used, inverse, y});
  }
};

// ---- backward

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

template <class T, int kPack> struct LastApplyGrad {
  using P = Compute<T>;
  LastLay lay;
  const T *x, *dy;
  const P *scale, *used, *inverse, *kept;
  T* dx;
  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, piece = n / lay.packs;
    P mean[kPack], factor[kPack], mean_g[kPack], slope[kPack];
    for (int k = 0; k < kPack; ++k) {
      mean[k] = used[first + k];
      factor[k] = scale[first + k] * inverse[first + k];
      mean_g[k] = kept[first + k];
      slope[k] = kept[lay.channels + first + k] * inverse[first + k];
    }
    AB_UNROLL for (int64_t row = lay.begin(piece); row < lay.end(piece); ++row) {
      const int64_t at = row * lay.channels + first;
      const auto px = *reinterpret_cast<const Pack<T, kPack>*>(x + at);
      auto pg = *reinterpret_cast<const Pack<T, kPack>*>(dy + at);
      for (int k = 0; k < kPack; ++k) {
        store(&pg.at[k], factor[k] * (load(pg.at[k]) - mean_g[k] - (load(px.at[k]) - mean[k]) * slope[k]));
      }
      *reinterpret_cast<Pack<T, kPack>*>(dx + at) = pg;
    }
  }
};

struct BatchNormLastGrad {
  using Args = BatchNormGradArgs;
  template <class T> static size_t room(const Args& a) {
    return last_parts<T>(a.outer, a.channels) + static_cast<size_t>(2 * a.channels) * sizeof(Compute<T>);
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *x = a.x.get<T>(), *dy = a.dy.get<T>();
    T* dx = a.dx.get<T>();
    return by_packs<T>(a.channels, {x, dy, dx},
                       [&](auto pack) { return run<T, decltype(pack)::value>(launch, a, x, dy, dx); });
  }

 private:
  template <class T, int kPack> static int run(const Launch& launch, const Args& a, const T* x, const T* dy, T* dx) {
    using P = Compute<T>;
    const LastLay lay(a.outer, a.channels, kPack, kSumThreads);
    P* kept = launch.workspace.get<P>();
    P* parts = kept + 2 * a.channels;
    const P *used = a.used.get<P>(), *inverse = a.inverse.get<P>();
    const LastSums<T, kPack, Normalised<T>> sums{lay, x, dy, {used, inverse}, parts};
    if (const int failed = each(launch, lay.threads(), sums)) return failed;
    const LastGradients<P> gradients{{lay, parts}, a.dscale.get<P>(), a.dbias.get<P>(), kept};
    if (const int failed = rows(launch, a.channels, lay.pieces, gradients)) return failed;
    if (!dx) return 0;
    const LastLay whole(a.outer, a.channels, kPack, kApplyThreads);
    return each(launch, whole.threads(),
                LastApplyGrad<T, kPack>{whole, x, dy, a.scale.get<P>(), used, inverse, kept, dx});
  }
};

AB_KERNEL("batch_norm_last", BatchNormLast, float, double, half, bfloat16);
AB_KERNEL("batch_norm_last_grad", BatchNormLastGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
