// Normalizes each row separately, on devices: "layer_norm", "layer_norm_grad".
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/row_in_lanes.h"
#include "ops/device/sum_columns.h"

namespace anabranch::device {

struct LayerNorm {
  using Args = LayerNormArgs;
  template <class T> struct Body {
    const T* x;
    const Compute<T>*scale, *bias;
    T* y;
    Compute<T>*mean, *variance;
    int64_t width;
    Compute<T> epsilon;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const T* from = x + row * width;
      double sum = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) sum += static_cast<double>(load(from[i]));
      const double count = static_cast<double>(width);
      const auto m = static_cast<Compute<T>>(width ? lanes.sum(sum) / count : 0);
      double squares = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
        const Compute<T> off = load(from[i]) - m;
        squares += static_cast<double>(off * off);
      }
      const auto v = static_cast<Compute<T>>(width ? lanes.sum(squares) / count : 0);
      const Compute<T> inv = 1 / std::sqrt(v + epsilon);
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
        const Compute<T> hat = (load(from[i]) - m) * inv, scaled = scale ? hat * scale[i] : hat;
        store(y + row * width + i, bias ? scaled + bias[i] : scaled);
      }
      if (lanes.index() != 0) return;
      mean[row] = m;
      variance[row] = v;
    }
  };
  template <class T, class Share> struct OfHeld {
    Body<T> o;
    Share share;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      using P = Compute<T>;
      typename Share::template Held<T> x;
      x.read(lanes, share, o.x + row * o.width);
      double sum = 0;
      share.elements(lanes, [&](int k, int e) { sum += static_cast<double>(x(k, e)); });
      const double count = static_cast<double>(o.width);
      const auto m = static_cast<P>(lanes.sum(sum) / count);
      double squares = 0;
      share.elements(lanes, [&](int k, int e) {
        const P off = x(k, e) - m;
        squares += static_cast<double>(off * off);
      });
      const auto v = static_cast<P>(lanes.sum(squares) / count);
      const P inv = 1 / std::sqrt(v + o.epsilon);
      typename Share::template Of<P> y;
      share.packs(lanes, [&](int k, int first) {
        typename Share::template Packed<P> scale, bias;
        if (o.scale) scale = share.pack(o.scale + first);
        if (o.bias) bias = share.pack(o.bias + first);
        AB_UNROLL_ALL for (int e = 0; e < Share::kPack; ++e) {
          const P hat = (x(k, e) - m) * inv, scaled = o.scale ? hat * scale.at[e] : hat;
          y.at[k][e] = o.bias ? scaled + bias.at[e] : scaled;
        }
      });
      share.write(lanes, o.y + row * o.width, [&](int k, int e) { return y.at[k][e]; });
      if (lanes.index() != 0) return;
      o.mean[row] = m;
      o.variance[row] = v;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    const Body<T> body{a.x.get<T>(),    a.scale.get<P>(),    a.bias.get<P>(), a.y.get<T>(),
                       a.mean.get<P>(), a.variance.get<P>(), a.width,         static_cast<P>(a.epsilon)};
    return by_share<T>(
        a.width,
        [&](auto share) {
          return rows_by_warps(launch, a.rows, OfHeld<T, decltype(share)>{body, share});
        },
        [&] { return rows(launch, a.rows, a.width, body); }, body.x, body.scale, body.bias, body.y);
  }
};

// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale; dscale = the sums of dy xhat, dbias of dy.
struct LayerNormGrad {
  using Args = LayerNormArgs;
  template <class T> struct Operands {
    const T *x, *dy;
    const Compute<T>*scale, *mean, *variance;
    int64_t width;
    Compute<T> epsilon;
    explicit Operands(const Args& a)
        : x(a.x.get<T>()),
          dy(a.dy.get<T>()),
          scale(a.scale.get<Compute<T>>()),
          mean(a.mean_in.get<Compute<T>>()),
          variance(a.variance_in.get<Compute<T>>()),
          width(a.width),
          epsilon(static_cast<Compute<T>>(a.epsilon)) {}
    AB_HD Compute<T> inverse(int64_t row) const { return 1 / std::sqrt(variance[row] + epsilon); }
    AB_HD Compute<T> hat(int64_t row, int64_t i, Compute<T> inv) const {
      return (load(x[row * width + i]) - mean[row]) * inv;
    }
    AB_HD Compute<T> h(int64_t row, int64_t i) const {
      const Compute<T> d = load(dy[row * width + i]);
      return scale ? d * scale[i] : d;
    }
  };
  template <class T> struct Rows {
    Operands<T> o;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const Compute<T> inv = o.inverse(row);
      double sum = 0, products = 0;
      for (int64_t i = lanes.index(); i < o.width; i += lanes.count()) {
        const Compute<T> h = o.h(row, i);
        sum += static_cast<double>(h);
        products += static_cast<double>(h * o.hat(row, i, inv));
      }
      const double count = static_cast<double>(o.width);
      const auto mean_h = static_cast<Compute<T>>(lanes.sum(sum) / count);
      const auto slope = static_cast<Compute<T>>(lanes.sum(products) / count);
      for (int64_t i = lanes.index(); i < o.width; i += lanes.count()) {
        store(dx + row * o.width + i, inv * (o.h(row, i) - mean_h - o.hat(row, i, inv) * slope));
      }
    }
  };
  template <class T, class Share> struct HeldRows {
    Share share;
    Operands<T> o;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      using P = Compute<T>;
      const int64_t begin = row * share.width;
      typename Share::template Held<T> x, dy;
      x.read(lanes, share, o.x + begin);
      dy.read(lanes, share, o.dy + begin);
      const P mean = o.mean[row], inv = o.inverse(row);
      const auto hat = [&](int k, int e) { return (x(k, e) - mean) * inv; };
      typename Share::template Of<P> h;
      double sum = 0, products = 0;
      share.packs(lanes, [&](int k, int first) {
        typename Share::template Packed<P> scale;
        if (o.scale) scale = share.pack(o.scale + first);
        AB_UNROLL_ALL for (int e = 0; e < Share::kPack; ++e) {
          h.at[k][e] = o.scale ? dy(k, e) * scale.at[e] : dy(k, e);
          sum += static_cast<double>(h.at[k][e]);
          products += static_cast<double>(h.at[k][e] * hat(k, e));
        }
      });
      const double count = static_cast<double>(share.width);
      const auto mean_h = static_cast<P>(lanes.sum(sum) / count), slope = static_cast<P>(lanes.sum(products) / count);
      share.write(lanes, dx + begin, [&](int k, int e) { return inv * (h.at[k][e] - mean_h - hat(k, e) * slope); });
    }
  };
  template <class T> static int slopes(const Launch& launch, const Args& a) {
    const Operands<T> o(a);
    T* dx = a.y.get<T>();
    return by_share<T>(
        a.width,
        [&](auto share) {
          return rows_by_warps(launch, a.rows, HeldRows<T, decltype(share)>{share, o, dx});
        },
        [&] {
          return rows(launch, a.rows, a.width, Rows<T>{o, dx});
        },
        o.x, o.dy, o.scale, dx);
  }
  // The column sums of dy xhat and of dy, in one pass.
  template <class T, int kColumns> struct Columns {
    using Wide = double;
    static constexpr int kPack = kColumns, kSums = 2, kAtOnce = 4;
    struct Read {
      Pack<T, kPack> x, dy;
      Compute<T> mean, variance;
    };
    Operands<T> o;
    Compute<T>*dscale, *dbias;
    AB_HD Read read(int64_t row, int64_t first) const {
      const int64_t at = row * o.width + first;
      return {*reinterpret_cast<const Pack<T, kPack>*>(o.x + at), *reinterpret_cast<const Pack<T, kPack>*>(o.dy + at),
              o.mean[row], o.variance[row]};
    }
    AB_HD void add(const Read& in, Wide (&sums)[kSums][kPack]) const {
      const Compute<T> inv = 1 / std::sqrt(in.variance + o.epsilon);
      for (int k = 0; k < kPack; ++k) {
        const Compute<T> d = load(in.dy.at[k]);
        sums[0][k] += static_cast<Wide>(d * ((load(in.x.at[k]) - in.mean) * inv));
        sums[1][k] += static_cast<Wide>(d);
      }
    }
    AB_HD void put(int64_t column, const Wide (&totals)[kSums]) const {
      if (dscale) dscale[column] = static_cast<Compute<T>>(totals[0]);
      if (dbias) dbias[column] = static_cast<Compute<T>>(totals[1]);
    }
  };
  template <class T> static size_t room(const Args& a) {
    return a.mean.there() || a.variance.there() ? sum_columns_room<double, 2>(a.rows, a.width) : 0;
  }
  template <class T> static int columns(const Launch& launch, const Args& a) {
    constexpr int kPack = sizeof(T) <= 4 ? 4 : 1;
    const Operands<T> o(a);
    const bool packs = a.width % kPack == 0 && packed<Pack<T, kPack>>(o.x) && packed<Pack<T, kPack>>(o.dy);
    Compute<T>*dscale = a.mean.get<Compute<T>>(), *dbias = a.variance.get<Compute<T>>();
    const auto make = [&](auto pack) { return Columns<T, decltype(pack)::value>{o, dscale, dbias}; };
    return sum_columns<kPack>(launch, a.rows, a.width, packs, make, launch.workspace.get<double>());
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.y.there()) {
      if (const int failed = slopes<T>(launch, a)) return failed;
    }
    return a.mean.there() || a.variance.there() ? columns<T>(launch, a) : 0;
  }
};

AB_KERNEL("layer_norm", LayerNorm, float, double, half, bfloat16);
AB_KERNEL("layer_norm_grad", LayerNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
