// Group normalization on devices: "group_norm", "group_norm_grad"; a group of one channel is instance normalization.
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {

struct GroupDims {  // a sample as [channels, inner], or [inner, channels] with the channels last
  int64_t samples, channels, inner, groups;
  bool last;
  explicit GroupDims(const GroupNormArgs& a)
      : samples(a.samples),
        channels(a.channels),
        inner(a.inner),
        groups(a.groups),
        last((a.flags & kChannelsLast) != 0) {}
  AB_HD int64_t width() const { return groups ? channels / groups : 0; }  // channels of a group
  AB_HD int64_t count() const { return width() * inner; }                 // elements of a group
  AB_HD int64_t channel(int64_t g, int64_t i) const { return g * width() + (last ? i % width() : i / inner); }
  // Element i of group `row`, numbered through all samples.
  AB_HD int64_t at(int64_t row, int64_t i) const {
    const int64_t base = row / groups * channels * inner, first = row % groups * width();
    return last ? base + i / width() * channels + first + i % width() : base + first * inner + i;
  }
  // Element i of a channel, numbered through all samples.
  AB_HD int64_t in_channel(int64_t channel, int64_t i) const {
    const int64_t sample = i / inner, place = i % inner, base = sample * channels * inner;
    return last ? base + place * channels + channel : base + channel * inner + place;
  }
};

struct GroupNorm {
  using Args = GroupNormArgs;
  template <class T> struct Body {
    GroupDims d;
    const T *x, *scale, *bias;
    T *y, *mean, *variance;
    Compute<T> epsilon;
    bool inverse;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const int64_t n = d.count();
      const double count = static_cast<double>(n);
      double sum = 0, squares = 0;
      for (int64_t i = lanes.index(); i < n; i += lanes.count()) sum += static_cast<double>(load(x[d.at(row, i)]));
      const auto m = static_cast<Compute<T>>(n ? lanes.sum(sum) / count : 0);
      for (int64_t i = lanes.index(); i < n; i += lanes.count()) {
        const Compute<T> off = load(x[d.at(row, i)]) - m;
        squares += static_cast<double>(off * off);
      }
      const auto v = static_cast<Compute<T>>(n ? lanes.sum(squares) / count : 0);
      const Compute<T> inv = 1 / std::sqrt(v + epsilon);
      for (int64_t i = lanes.index(); i < n; i += lanes.count()) {
        const int64_t at = d.at(row, i), k = d.channel(row % d.groups, i);
        store(y + at, (load(x[at]) - m) * inv * (scale ? load(scale[k]) : 1) + (bias ? load(bias[k]) : 0));
      }
      if (lanes.index() != 0) return;
      store(mean + row, m);
      store(variance + row, inverse && n ? inv : v);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Body<T> body{GroupDims(a),
                       a.x.get<T>(),
                       a.scale.get<T>(),
                       a.bias.get<T>(),
                       a.y.get<T>(),
                       a.mean.get<T>(),
                       a.variance.get<T>(),
                       static_cast<Compute<T>>(a.epsilon),
                       (a.flags & kInverseDeviation) != 0};
    return rows(launch, a.samples * a.groups, body.d.count(), body);
  }
};

// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale; dscale = the sums of dy xhat, dbias of dy.
struct GroupNormGrad {
  using Args = GroupNormArgs;
  template <class T> struct Operands {
    using C = Compute<T>;
    GroupDims d;
    const T *x, *scale, *bias, *dy, *mean, *variance;
    C epsilon;
    int32_t flags;
    explicit Operands(const Args& a)
        : d(a),
          x(a.x.get<T>()),
          scale(a.scale.get<T>()),
          bias(a.bias.get<T>()),
          dy(a.dy.get<T>()),
          mean(a.mean_in.get<T>()),
          variance(a.variance_in.get<T>()),
          epsilon(static_cast<C>(a.epsilon)),
          flags(a.flags) {}
    AB_HD C inverse(int64_t row) const {
      const C v = load(variance[row]);
      return flags & kInverseDeviation ? v : 1 / std::sqrt(v + epsilon);
    }
    // xhat from X, or from Y if X is not given; then a scale of 0 has erased it.
    AB_HD C hat(int64_t row, int64_t at, int64_t channel, C inv) const {
      if (!(flags & kFromNormalized)) return (load(x[at]) - (mean ? load(mean[row]) : 0)) * inv;
      const C value = load(x[at]) - (bias ? load(bias[channel]) : 0);
      return scale && load(scale[channel]) != 0 ? value / load(scale[channel]) : value;
    }
    AB_HD C h(int64_t at, int64_t channel) const { return load(dy[at]) * (scale ? load(scale[channel]) : 1); }
  };
  template <class T> struct Rows {
    Operands<T> o;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const GroupDims& d = o.d;
      const Compute<T> inv = o.inverse(row);
      double sum = 0, products = 0;
      for (int64_t i = lanes.index(); i < d.count(); i += lanes.count()) {
        const int64_t at = d.at(row, i), k = d.channel(row % d.groups, i);
        const Compute<T> h = o.h(at, k);
        sum += static_cast<double>(h);
        products += static_cast<double>(h * o.hat(row, at, k, inv));
      }
      const double count = static_cast<double>(d.count());
      const auto slope = static_cast<Compute<T>>(lanes.sum(products) / count);
      const auto all = static_cast<Compute<T>>(lanes.sum(sum) / count);
      const Compute<T> mean_h = o.flags & kNotCentered ? Compute<T>(0) : all;
      for (int64_t i = lanes.index(); i < d.count(); i += lanes.count()) {
        const int64_t at = d.at(row, i), k = d.channel(row % d.groups, i);
        store(dx + at, inv * (o.h(at, k) - mean_h - o.hat(row, at, k, inv) * slope));
      }
    }
  };
  template <class T, bool kOfScale> struct Channels {
    using Wide = double;
    Operands<T> o;
    T* to;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t channel, int64_t i) const {
      const int64_t at = o.d.in_channel(channel, i), row = i / o.d.inner * o.d.groups + channel / o.d.width();
      const Compute<T> g = load(o.dy[at]);
      return static_cast<double>(kOfScale ? g * o.hat(row, at, channel, o.inverse(row)) : g);
    }
    AB_HD void put(int64_t channel, Wide total) const { store(to + channel, static_cast<Compute<T>>(total)); }
  };
  static Neighbors neighbors(const Args& a) {
    return a.flags & kChannelsLast ? Neighbors::kRows : Neighbors::kElements;
  }
  template <class T> static size_t room(const Args& a) {
    return a.mean.there() || a.variance.there() ? fold_room<double>(a.channels, a.samples * a.inner, neighbors(a)) : 0;
  }
  template <class T, bool kOfScale> static int channels(const Launch& launch, const Args& a) {
    const DeviceOut to = kOfScale ? a.mean : a.variance;
    if (!to.there()) return 0;
    return fold_rows(launch, a.channels, a.samples * a.inner, neighbors(a),
                     Channels<T, kOfScale>{Operands<T>(a), to.get<T>()}, launch.workspace.get<double>());
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.y.there()) {
      const Rows<T> body{Operands<T>(a), a.y.get<T>()};
      if (const int failed = rows(launch, a.samples * a.groups, body.o.d.count(), body)) return failed;
    }
    if (const int failed = channels<T, true>(launch, a)) return failed;
    return channels<T, false>(launch, a);
  }
};

AB_KERNEL("group_norm", GroupNorm, float, double, half, bfloat16);
AB_KERNEL("group_norm_grad", GroupNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
