// A scale and a bias for each channel on devices: "affine_channel", with "_grad".
#include "ops/device/args_rows.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct AffineChannel {
  using Args = AffineChannelArgs;
  template <class T> struct Body {  // without bias: the gradient by X
    const T *x, *scale, *bias;
    T* y;
    int64_t channels, inner;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / inner % channels;
      const Compute<T> scaled = load(x[i]) * load(scale[k]);
      store(y + i, bias ? scaled + load(bias[k]) : scaled);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.outer * a.channels * a.inner,
                Body<T>{a.x.get<T>(), a.scale.get<T>(), a.bias.get<T>(), a.y.get<T>(), a.channels, a.inner});
  }
};

struct AffineChannelGrad {
  using Args = AffineChannelArgs;
  template <class T> struct OfChannels {
    const T *x, *dout;
    T *dscale, *dbias;
    int64_t outer, channels, inner;
    template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
      double by_scale = 0, by_bias = 0;
      for (int64_t i = lanes.index(); i < outer * inner; i += lanes.count()) {
        const int64_t at = (i / inner * channels + k) * inner + i % inner;
        by_scale += static_cast<double>(load(dout[at]) * load(x[at]));
        by_bias += static_cast<double>(load(dout[at]));
      }
      by_scale = lanes.sum(by_scale);
      by_bias = lanes.sum(by_bias);
      if (lanes.index() != 0) return;
      if (dscale) store(dscale + k, static_cast<Compute<T>>(by_scale));
      if (dbias) store(dbias + k, static_cast<Compute<T>>(by_bias));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T* dout = a.dout.get<T>();
    if (a.y.there()) {
      const AffineChannel::Body<T> of_x{dout, a.scale.get<T>(), nullptr, a.y.get<T>(), a.channels, a.inner};
      if (const int failed = each(launch, a.outer * a.channels * a.inner, of_x)) return failed;
    }
    if (!a.dscale.there() && !a.dbias.there()) return 0;
    return rows(launch, a.channels, a.outer * a.inner,
                OfChannels<T>{a.x.get<T>(), dout, a.dscale.get<T>(), a.dbias.get<T>(), a.outer, a.channels, a.inner});
  }
};

AB_KERNEL("affine_channel", AffineChannel, float, double, half, bfloat16);
AB_KERNEL("affine_channel_grad", AffineChannelGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
