// Batch normalization on devices where libraries do not support it: by given statistics, with their gradients, and
// moving statistics of biased variances. "batch_norm/apply", "batch_norm/move", "batch_norm/grad".
#include <cmath>

#include "ops/device/args_library.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

// Operands of channels have the computing type: float32 for 16-bit elements.
template <class T> AB_HD T inverse_deviation(T variance, T epsilon) { return 1 / std::sqrt(variance + epsilon); }

struct BatchNormApply {
  using Args = BatchNormArgs;
  template <class T> struct Channel {
    const T *mean, *variance;
    T *mean_out, *variance_out, *used, *inverse;
    T epsilon;
    bool pass;
    AB_HD void operator()(int64_t k) const {
      const T m = mean[k], v = variance[k];
      used[k] = pass ? T{0} : m;
      inverse[k] = pass ? T{0} : inverse_deviation(v, epsilon);
      if (mean_out) mean_out[k] = m;
      if (variance_out) variance_out[k] = v;
    }
  };
  template <class T> struct Body {
    const T* x;
    const Compute<T>*scale, *bias, *used, *inverse;
    T* y;
    int64_t channels, inner;
    bool pass;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / inner % channels;
      const Compute<T> value = load(x[i]), factor = scale[k] * inverse[k];
      store(y + i, pass ? value : value * factor + (bias[k] - used[k] * factor));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    P *used = a.used.get<P>(), *inverse = a.inverse.get<P>();
    const bool pass = a.pass != 0;
    const Channel<P> channel{a.mean.get<P>(),
                             a.variance.get<P>(),
                             a.mean_out.get<P>(),
                             a.variance_out.get<P>(),
                             used,
                             inverse,
                             static_cast<P>(a.epsilon),
                             pass};
    if (const int error = each(launch, a.channels, channel)) return error;
    const Body<T> body{a.x.get<T>(), a.scale.get<P>(), a.bias.get<P>(), used, inverse,
                       a.y.get<T>(), a.channels,       a.inner,         pass};
    return each(launch, a.outer * a.channels * a.inner, body);
  }
};

struct BatchNormMove {
  using Args = BatchNormArgs;
  template <class T> struct Body {
    const T *mean, *variance, *used, *unbiased;
    T *mean_out, *variance_out;
    T keep, biased;
    AB_HD void operator()(int64_t k) const {
      if (mean_out) mean_out[k] = mean[k] * keep + used[k] * (1 - keep);
      if (variance_out) variance_out[k] = variance[k] * keep + unbiased[k] * biased * (1 - keep);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const auto count = static_cast<double>(a.outer * a.inner);
    const Body<T> body{a.mean.get<T>(),
                       a.variance.get<T>(),
                       a.used.get<T>(),
                       a.unbiased.get<T>(),
                       a.mean_out.get<T>(),
                       a.variance_out.get<T>(),
                       static_cast<T>(a.momentum),
                       static_cast<T>((count - 1) / count)};
    return each(launch, a.channels, body);
  }
};

// One channel per group of lanes: cases that libraries do not support are rare.
struct BatchNormGrad {
  using Args = BatchNormGradArgs;
  template <class T> struct Body {
    using P = Compute<T>;
    const T *x, *dy;
    const P *scale, *used, *inverse, *mean, *variance;
    T* dx;
    P *dscale, *dbias;
    int64_t channels, inner, count;
    P epsilon, share;  // share: of a sum in each element
    bool pass;

    AB_HD int64_t at(int64_t k, int64_t i) const { return (i / inner * channels + k) * inner + i % inner; }
    template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
      const P m = mean ? mean[k] : used[k];
      const P inv = variance ? inverse_deviation(variance[k], epsilon) : inverse[k];
      P sum = 0, sum_x = 0;
      for (int64_t i = lanes.index(); i < count; i += lanes.count()) {
        const P g = load(dy[at(k, i)]);
        sum += g;
        sum_x += g * ((load(x[at(k, i)]) - m) * inv);
      }
      sum = lanes.sum(sum);
      sum_x = lanes.sum(sum_x);
      if (lanes.index() == 0 && dbias) dbias[k] = pass ? P{0} : sum;
      if (lanes.index() == 0 && dscale) dscale[k] = pass ? P{0} : sum_x;
      if (!dx) return;
      const P factor = scale[k] * inv, mean_g = sum * share, slope = sum_x * share * inv;
      for (int64_t i = lanes.index(); i < count; i += lanes.count()) {
        const P g = load(dy[at(k, i)]);
        store(dx + at(k, i), pass ? g : factor * (g - mean_g - (load(x[at(k, i)]) - m) * slope));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    const int64_t count = a.outer * a.inner;
    const Body<T> body{a.x.get<T>(),
                       a.dy.get<T>(),
                       a.scale.get<P>(),
                       a.used.get<P>(),
                       a.inverse.get<P>(),
                       a.mean.get<P>(),
                       a.variance.get<P>(),
                       a.dx.get<T>(),
                       a.dscale.get<P>(),
                       a.dbias.get<P>(),
                       a.channels,
                       a.inner,
                       count,
                       static_cast<P>(a.epsilon),
                       a.fixed || !count ? P{0} : 1 / static_cast<P>(count),
                       a.pass != 0};
    return rows(launch, a.channels, count, body);
  }
};

AB_KERNEL("batch_norm/apply", BatchNormApply, float, double, half, bfloat16);
AB_KERNEL("batch_norm/move", BatchNormMove, float, double);
AB_KERNEL("batch_norm/grad", BatchNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
