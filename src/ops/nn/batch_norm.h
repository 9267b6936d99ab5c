// The kernels of batch_norm and its gradient. A tensor is treated as [N, C, S] (channels first) or [N, C] rows
// (channels last, and 2-D inputs), and both are reduced to two loops over the elements of a channel; images in blocked
// layout have separate loops (batch_norm_blocked.cc).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/kernels/outputs.h"
#include "ops/nn/channel_sums.h"

namespace anabranch::nn::batch_norm {

// A single element per channel has no variance to divide by: it is copied, and so is its gradient, and the moving
// statistics do not change.
inline bool passes_through(const Dims& d, bool fixed) { return !fixed && d.per_channel() == 1; }

// Element i of a gradient, masked by relu where its output is not positive.
struct Masked {
  const float *out, *dout;
  float operator[](int64_t i) const { return dout[i] * static_cast<float>(out[i] > 0); }
};

inline bool fixed_statistics(const ir::Op& op) {
  const bool test = op.attr<bool>("is_test") && !op.attr<bool>("trainable_statistics");
  return test || op.attr<bool>("use_global_stats");
}

template <class T> struct Forward {
  In x, scale, bias, mean, variance, momentum_in;
  Out y, mean_out, variance_out, saved_mean, saved_variance;
  bool fixed = false, last = false;
  float momentum = 0, epsilon = 0;
  ChannelSums<T, 1> sums;
  std::vector<T> factor, offset;  // y = x factor + offset, per channel

  Forward() = default;  // for callers that declare inputs and outputs themselves
  explicit Forward(const KernelArgs& op)
      : x(op.in("X")),
        scale(op.in("Scale")),
        bias(op.in("Bias")),
        mean(op.in("Mean")),
        variance(op.in("Variance")),
        momentum_in(op.in("MomentumTensor")),
        y(op.out("Y")),
        mean_out(op.out("MeanOut")),
        variance_out(op.out("VarianceOut")),
        saved_mean(op.out("SavedMean")),
        saved_variance(op.out("SavedVariance")),
        fixed(fixed_statistics(op.op())),
        last(channels_last(op.op())),
        momentum(op.attr<float>("momentum")),
        epsilon(op.attr<float>("epsilon")) {}

  T* vector(KernelContext& c, Out out) const { return c[out].template mutable_data<T>(); }

  // Mean and (biased) variance of the batch.
  void measure(KernelContext& c, const Dims& d, const T* data, T* m, T* v) {
    const auto count = static_cast<T>(std::max<int64_t>(1, d.per_channel()));
    sums.run(
        c, d, [=](int64_t i, int64_t, T(&t)[1]) { t[0] = data[i]; }, m);
    for (int64_t k = 0; k < d.channels; ++k) m[k] /= count;
    sums.run(
        c, d, [=](int64_t i, int64_t ch, T(&t)[1]) { t[0] = (data[i] - m[ch]) * (data[i] - m[ch]); }, v);
    for (int64_t k = 0; k < d.channels; ++k) v[k] /= count;
  }

  // The weight of these statistics in the moving ones.
  void move(KernelContext& c, const Dims& d, const T* m, const T* v) {
    T keep = static_cast<T>(momentum);
    if (momentum_in) keep = static_cast<T>(*c[momentum_in].template data<float>());
    const T *old_m = c[mean].template data<T>(), *old_v = c[variance].template data<T>();
    T *new_m = vector(c, mean_out), *new_v = vector(c, variance_out);
    for (int64_t k = 0; k < d.channels; ++k) {
      new_m[k] = old_m[k] * keep + m[k] * (1 - keep);
      new_v[k] = old_v[k] * keep + v[k] * (1 - keep);
    }
  }

  void carry_over(KernelContext& c, In in, Out out) const {
    if (!c.needs(out)) return;
    const T* from = c[in].template data<T>();
    T* to = vector(c, out);
    if (to != from) std::copy(from, from + c[in].numel(), to);
  }

  void operator()(KernelContext& c) {
    compute(c, [](int64_t, int64_t) {});
  }

  // done(begin, end): Y has been computed in this range.
  template <class Done> void compute(KernelContext& c, Done&& done) {
    const Dims d(c[x].shape(), last);
    const T* data = c[x].template data<T>();
    T* to = vector(c, y);
    run(
        c, d, [&](T* m, T* v) { measure(c, d, data, m, v); },
        [&](const T* f, const T* o) {
          each_run(
              c, d,
              [=](int64_t begin, int64_t end, int64_t ch) {
                const T scaled = f[ch], shifted = o[ch];
                for (int64_t i = begin; i < end; ++i) to[i] = data[i] * scaled + shifted;
              },
              done);
        });
  }

  // measured(m, v): mean and variance of the batch; applied(f, o): Y = X f + o, per channel.
  template <class Measure, class Apply> void run(KernelContext& c, const Dims& d, Measure&& measured, Apply&& applied) {
    const T *m = c[mean].template data<T>(), *v = c[variance].template data<T>();
    T *own_m = vector(c, saved_mean), *own_v = vector(c, saved_variance);
    factor.resize(static_cast<size_t>(d.channels));
    offset.resize(static_cast<size_t>(d.channels));
    const bool pass = passes_through(d, fixed);
    if (pass || fixed || d.per_channel() == 0) {
      carry_over(c, mean, mean_out);
      carry_over(c, variance, variance_out);
      std::copy(m, m + d.channels, own_m);
      std::copy(v, v + d.channels, own_v);
    } else {
      measured(own_m, own_v);
      move(c, d, own_m, own_v);
    }
    pass ? keep_elements(d, own_m, own_v) : scale_by_channel(c, d, own_m, own_v);
    applied(factor.data(), offset.data());
  }

  void keep_elements(const Dims& d, T* m, T* v) {
    std::fill(m, m + d.channels, T{0});
    std::fill(v, v + d.channels, T{0});
    std::fill(factor.begin(), factor.end(), T{1});
    std::fill(offset.begin(), offset.end(), T{0});
  }

  // Converts the variances to inverse deviations, which the gradient needs, and to factors and offsets.
  void scale_by_channel(KernelContext& c, const Dims& d, const T* m, T* v) {
    const T *s = c[scale].template data<T>(), *b = c[bias].template data<T>();
    T *f = factor.data(), *o = offset.data();
    for (int64_t k = 0; k < d.channels; ++k) {
      v[k] = 1 / std::sqrt(v[k] + static_cast<T>(epsilon));
      f[k] = s[k] * v[k];
      o[k] = b[k] - m[k] * f[k];
    }
  }
};

template <class T> struct Backward {
  In x, scale, dy, saved_mean, saved_variance, mean, variance;
  Out dx, dscale, dbias;
  bool fixed = false, last = false;
  float epsilon = 0;
  ChannelSums<T, 2> sums;
  std::vector<T> both, inverse;

  Backward() = default;
  explicit Backward(const KernelArgs& op)
      : x(op.in("X")),
        scale(op.in("Scale")),
        dy(op.in("Y@GRAD")),
        saved_mean(op.in("SavedMean")),
        saved_variance(op.in("SavedVariance")),
        mean(op.in("Mean")),
        variance(op.in("Variance")),
        dx(op.out("X@GRAD")),
        dscale(op.out("Scale@GRAD")),
        dbias(op.out("Bias@GRAD")),
        fixed(fixed_statistics(op.op())),
        last(channels_last(op.op())),
        epsilon(op.attr<float>("epsilon")) {}

  // Inverse deviations: the saved ones, or those of the moving variance.
  const T* inverse_deviation(KernelContext& c, int64_t channels) {
    if (!fixed || !variance) return c[saved_variance].template data<T>();
    const T* v = c[variance].template data<T>();
    inverse.resize(static_cast<size_t>(channels));
    for (int64_t k = 0; k < channels; ++k)
      inverse[static_cast<size_t>(k)] = 1 / std::sqrt(v[k] + static_cast<T>(epsilon));
    return inverse.data();
  }

  void operator()(KernelContext& c) { compute(c, c[dy].template data<T>()); }

  template <class Gradient> void pass(KernelContext& c, const Dims& d, Gradient g) const {
    zeroed<T>(c, dscale);
    zeroed<T>(c, dbias);
    T* to = needed<T>(c, dx);
    for (int64_t i = 0; to && i < d.channels; ++i) to[i] = g[i];
  }

  // g[i] is element i of Y@GRAD.
  template <class Gradient> void compute(KernelContext& c, Gradient g) {
    const Dims d(c[x].shape(), last);
    if (passes_through(d, fixed)) return pass(c, d, g);
    const T *data = c[x].template data<T>(), *s = c[scale].template data<T>();
    const T* m = (fixed && mean ? c[mean] : c[saved_mean]).template data<T>();
    const T* inv = inverse_deviation(c, d.channels);
    both.resize(static_cast<size_t>(2 * d.channels));
    T *sum_g = both.data(), *sum_gx = both.data() + d.channels;  // sums of dy and of dy (x - mean) / deviation
    sums.run(
        c, d,
        [=](int64_t i, int64_t ch, T(&t)[2]) {
          t[0] = g[i];
          t[1] = g[i] * ((data[i] - m[ch]) * inv[ch]);
        },
        sum_g);
    if (c.needs(dbias)) std::copy(sum_g, sum_g + d.channels, c[dbias].template mutable_data<T>());
    if (c.needs(dscale)) std::copy(sum_gx, sum_gx + d.channels, c[dscale].template mutable_data<T>());
    if (!c.needs(dx)) return;
    T* to = c[dx].template mutable_data<T>();
    const T share = fixed ? T{0} : 1 / static_cast<T>(std::max<int64_t>(1, d.per_channel()));
    each_run(c, d, [=](int64_t begin, int64_t end, int64_t ch) {
      const T factor = s[ch] * inv[ch], mean_g = sum_g[ch] * share, slope = sum_gx[ch] * share * inv[ch],
              middle = m[ch];
      for (int64_t i = begin; i < end; ++i) to[i] = factor * (g[i] - mean_g - (data[i] - middle) * slope);
    });
  }
};

// The same for images in blocked layout. With relu: Y = max(.., 0), and Y@GRAD counts where Y > 0.
Kernel blocked_forward(const KernelArgs& op, bool relu = false);
Kernel blocked_backward(const KernelArgs& op, bool relu = false);

// With relu, for float32 in any layout: the kernels of fused_batch_norm_act.
Kernel relu_forward(const KernelArgs& op);
Kernel relu_backward(const KernelArgs& op);

// On devices, for a matrix or with channels last, by the statistics of the batch; Unsupported otherwise.
inline constexpr const char* kMatrix = "matrix";  // the attribute: X is a matrix, whose channels are last in any layout
template <class T> Kernel queued_relu_forward(const KernelArgs& op);
template <class T> Kernel queued_relu_backward(const KernelArgs& op);

}  // namespace anabranch::nn::batch_norm
