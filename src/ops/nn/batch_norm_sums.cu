// Batch norm over several devices: "batch_norm_sums", "batch_norm_by_sums", "batch_norm_grad_by_sums".
#include "ops/nn/batch_norm_sums.h"

#include "ops/device/args_norm.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

inline nn::ChannelWalk walk_of(const NormSumsArgs& a) { return {a.outer, a.channels, a.inner}; }
inline nn::SumsOfParts sums_of(const NormSumsArgs& a, const DeviceIn& sums) { return {sums.get<double>(), a.channels}; }

struct SumChannels {
  using Args = NormSumsArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    const nn::ChannelSumsOf<T> body{a.x.get<T>(),          a.dy.get<T>(),        a.used_in.get<P>(),
                                    a.inverse_in.get<P>(), a.sums.get<double>(), walk_of(a)};
    return rows(launch, a.channels, a.outer * a.inner, body);
  }
};

struct NormaliseChannels {
  using Args = NormSumsArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    const nn::NormaliseBySums<T> body{a.x.get<T>(),
                                      a.scale.get<P>(),
                                      a.bias.get<P>(),
                                      a.mean.get<P>(),
                                      a.variance.get<P>(),
                                      a.momentum_in.get<float>(),
                                      sums_of(a, a.sums_in),
                                      a.y.get<T>(),
                                      a.mean_out.get<P>(),
                                      a.variance_out.get<P>(),
                                      a.used.get<P>(),
                                      a.inverse.get<P>(),
                                      walk_of(a),
                                      a.momentum,
                                      a.epsilon};
    return rows(launch, a.channels, a.outer * a.inner, body);
  }
};

struct ChannelGradients {
  using Args = NormSumsArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    const nn::GradientBySums<T> body{a.x.get<T>(),
                                     a.dy.get<T>(),
                                     a.scale.get<P>(),
                                     a.used_in.get<P>(),
                                     a.inverse_in.get<P>(),
                                     sums_of(a, a.sums_in),
                                     sums_of(a, a.sums_own),
                                     a.y.get<T>(),
                                     a.dscale.get<P>(),
                                     a.dbias.get<P>(),
                                     walk_of(a)};
    return rows(launch, a.channels, a.outer * a.inner, body);
  }
};

AB_KERNEL("batch_norm_sums", SumChannels, float, double, half, bfloat16);
AB_KERNEL("batch_norm_by_sums", NormaliseChannels, float, double, half, bfloat16);
AB_KERNEL("batch_norm_grad_by_sums", ChannelGradients, float, double, half, bfloat16);

}  // namespace anabranch::device
