// The kernels of batch_norm and its gradient on the CPU, with relu or without. Threads share channels, or rows if the
// channels are the last axis (and of 2-D inputs); the loops are in channel_loops.h. Images in blocked layout have
// separate loops (batch_norm_blocked.cc).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/kernels/outputs.h"
#include "ops/nn/batch_norm_slots.h"
#include "ops/nn/channel_parts.h"

namespace anabranch::nn::batch_norm {

// A single element per channel has no variance to divide by: it is copied, and so is its gradient, and the moving
// statistics do not change.
inline bool passes_through(const Dims& d, bool fixed) { return !fixed && d.per_channel() == 1; }

using channel_loops::Gradient;

template <class T> struct Forward : ForwardSlots {
  bool relu = false;  // Y is the positive part
  RowSums sums;
  std::vector<T> factor, offset;  // y = x factor + offset, per channel
  std::vector<double> channel_sums;

  Forward() = default;
  explicit Forward(const KernelArgs& op, bool with_relu = false) : ForwardSlots(forward_slots(op)), relu(with_relu) {}

  void operator()(KernelContext& c) {
    compute(c, [](int64_t, int64_t) {});
  }

  // done(begin, end): Y has been computed in this range.
  template <class Done> void compute(KernelContext& c, Done&& done) {
    const Dims d(c[x].shape(), last);
    const Statistics to = statistics(c, d);
    const T* data = c[x].template data<T>();
    T* out = vector(c, y);
    const auto apply = [&](const Part& part, int64_t at, int64_t ch) {
      channel_loops::loops<T>().affine(part, data + at, factor.data() + ch, offset.data() + ch, relu, out + at);
      const int64_t width = part.channels * part.width;
      for (int64_t r = 0; r < part.count; ++r) done(at + r * part.stride, at + r * part.stride + width);
    };
    if (by_rows(d)) {
      if (to.measured) measure_rows(c, d, data, to);
      for (int64_t k = 0; k < d.channels; ++k) settle(to, k);
    } else {
      each_group(c, d, [&](const Part& part, int64_t ch) {
        if (to.measured) measure(part, data + ch * d.inner, to, ch);
        for (int64_t k = ch; k < ch + part.channels; ++k) settle(to, k);
        if (at_once(d)) apply(part, ch * d.inner, ch);
      });
      if (at_once(d)) return;
    }
    each_chunk_of_rows(c, d, [&](const Part& rows, int64_t at) { apply(rows, at, 0); });
  }

  struct Statistics {
    bool measured, pass;
    T count, keep;  // elements of a channel; the weight of the old moving statistics
    const T *s, *b, *m, *v;
    T *new_m, *new_v, *own_m, *own_v;
  };

  // Mean and (biased) variance of some channels.
  void measure(const Part& part, const T* from, const Statistics& to, int64_t ch) {
    double* sum = channel_sums.data() + ch;
    const auto mean_to = [&](T* out) {
      for (int64_t k = 0; k < part.channels; ++k) {
        out[k] = static_cast<T>(sum[k]) / to.count;
        sum[k] = 0;
      }
    };
    channel_loops::loops<T>().add_elements(part, from, sum);
    mean_to(to.own_m + ch);
    channel_loops::loops<T>().add_squares(part, from, to.own_m + ch, sum);
    mean_to(to.own_v + ch);
  }
  void measure_rows(KernelContext& c, const Dims& d, const T* data, const Statistics& to) {
    const auto& loops = channel_loops::loops<T>();
    const auto mean_to = [&](T* out, auto&& add) {
      sums.run(c, d, 1, add, out);
      for (int64_t k = 0; k < d.channels; ++k) out[k] /= to.count;
    };
    mean_to(to.own_m, [&](const Part& rows, int64_t at, double* sum) { loops.add_elements(rows, data + at, sum); });
    mean_to(to.own_v,
            [&](const Part& rows, int64_t at, double* sum) { loops.add_squares(rows, data + at, to.own_m, sum); });
  }

  T* vector(KernelContext& c, Out out) const { return c[out].mutable_data<T>(); }

  void carry_over(KernelContext& c, In in, Out out) const {
    const T* from = c[in].data<T>();
    T* to = needed<T>(c, out);
    if (to && to != from) std::copy(from, from + c[in].numel(), to);
  }

  // Measures the statistics of the batch, or returns the moving ones unchanged.
  Statistics statistics(KernelContext& c, const Dims& d) {
    const bool pass = passes_through(d, fixed), measured = !pass && !fixed && d.per_channel() > 0;
    const T *m = c[mean].template data<T>(), *v = c[variance].template data<T>();
    T *own_m = vector(c, saved_mean), *own_v = vector(c, saved_variance);
    if (!measured) {
      carry_over(c, mean, mean_out);
      carry_over(c, variance, variance_out);
      std::copy(m, m + d.channels, own_m);
      std::copy(v, v + d.channels, own_v);
    }
    factor.resize(static_cast<size_t>(d.channels));
    offset.resize(static_cast<size_t>(d.channels));
    channel_sums.assign(static_cast<size_t>(d.channels), 0.0);
    const T keep = static_cast<T>(momentum_in ? *c[momentum_in].template data<float>() : momentum);
    const T *s = c[scale].template data<T>(), *b = c[bias].template data<T>();
    T *new_m = measured ? vector(c, mean_out) : nullptr, *new_v = measured ? vector(c, variance_out) : nullptr;
    return {measured, pass, static_cast<T>(d.per_channel()), keep, s, b, m, v, new_m, new_v, own_m, own_v};
  }

  // Moves the moving statistics of a channel, and converts its variance to the inverse deviation, which the gradient
  // needs, and to Y = X factor + offset.
  void settle(const Statistics& to, int64_t k) {
    const auto at = static_cast<size_t>(k);
    if (to.pass) {
      to.own_m[k] = to.own_v[k] = offset[at] = 0;
      factor[at] = 1;
      return;
    }
    if (to.measured) {
      to.new_m[k] = to.m[k] * to.keep + to.own_m[k] * (1 - to.keep);
      to.new_v[k] = to.v[k] * to.keep + to.own_v[k] * (1 - to.keep);
    }
    to.own_v[k] = 1 / std::sqrt(to.own_v[k] + static_cast<T>(epsilon));
    factor[at] = to.s[k] * to.own_v[k];
    offset[at] = to.b[k] - to.own_m[k] * factor[at];
  }
};

template <class T> struct Backward : BackwardSlots {
  RowSums sums;
  std::vector<double> channel_sums;
  std::vector<T> per_channel, inverse;

  Backward() = default;
  explicit Backward(const KernelArgs& op) : BackwardSlots(backward_slots(op)) {}

  // Inverse deviations: the saved ones, or those of the moving variance.
  const T* inverse_deviation(KernelContext& c, int64_t channels) {
    if (!fixed || !variance) return c[saved_variance].template data<T>();
    const T* v = c[variance].template data<T>();
    inverse.resize(static_cast<size_t>(channels));
    for (int64_t k = 0; k < channels; ++k)
      inverse[static_cast<size_t>(k)] = 1 / std::sqrt(v[k] + static_cast<T>(epsilon));
    return inverse.data();
  }
  const T* mean_used(KernelContext& c) const { return (fixed && mean ? c[mean] : c[saved_mean]).template data<T>(); }
  // With relu Y@GRAD counts where Y > 0.
  Gradient<T> gradient(KernelContext& c) const {
    return {c[dy].template data<T>(), y ? c[y].template data<T>() : nullptr};
  }

  void operator()(KernelContext& c) {
    const Dims d(c[x].shape(), last);
    if (passes_through(d, fixed)) return pass(c, d, gradient(c));
    compute(c, d, gradient(c), c[x].template data<T>(), mean_used(c), inverse_deviation(c, d.channels),
            c[scale].template data<T>());
  }

  void pass(KernelContext& c, const Dims& d, Gradient<T> g) const {
    zeroed<T>(c, dscale);
    zeroed<T>(c, dbias);
    T* to = needed<T>(c, dx);
    for (int64_t i = 0; to && i < d.channels; ++i) to[i] = g[i];
  }

  // From the sums of g and of g (x - m) inv, per channel.
  void compute(KernelContext& c, const Dims& d, Gradient<T> g, const T* data, const T* m, const T* inv, const T* s) {
    per_channel.resize(static_cast<size_t>(5 * d.channels));
    T *sum_g = per_channel.data(), *sum_gx = sum_g + d.channels, *factor = sum_gx + d.channels;
    T *mean_g = factor + d.channels, *slope = mean_g + d.channels;
    T* to = needed<T>(c, dx);
    const T share = share_of_sum(d);
    const auto settle = [=](int64_t ch) {
      factor[ch] = s[ch] * inv[ch];
      mean_g[ch] = sum_g[ch] * share;
      slope[ch] = sum_gx[ch] * share * inv[ch];
    };
    const auto& loops = channel_loops::loops<T>();
    const auto apply = [=, &loops](const Part& part, int64_t at, int64_t ch) {
      loops.combine(part, g.from(at), data + at, {factor + ch, mean_g + ch, slope + ch, m + ch}, to + at);
    };
    const bool applied = !by_rows(d) && at_once(d);
    if (by_rows(d)) {
      sums.run(
          c, d, 2,
          [&](const Part& rows, int64_t at, double* out) {
            loops.add_products(rows, g.from(at), data + at, m, inv, out, out + d.channels);
          },
          sum_g);
      for (int64_t ch = 0; ch < d.channels; ++ch) settle(ch);
    } else {
      channel_sums.assign(static_cast<size_t>(2 * d.channels), 0.0);
      each_group(c, d, [&](const Part& part, int64_t ch) {
        const int64_t at = ch * d.inner;
        double *all_g = channel_sums.data() + ch, *all_gx = all_g + d.channels;
        loops.add_products(part, g.from(at), data + at, m + ch, inv + ch, all_g, all_gx);
        for (int64_t k = 0; k < part.channels; ++k) {
          sum_g[ch + k] = static_cast<T>(all_g[k]);
          sum_gx[ch + k] = static_cast<T>(all_gx[k]);
          settle(ch + k);
        }
        if (to && applied) apply(part, at, ch);
      });
    }
    if (to && !applied) each_chunk_of_rows(c, d, [&](const Part& rows, int64_t at) { apply(rows, at, 0); });
    give(c, d, sum_g, sum_gx);
  }

  // Of a sum over a channel, in the gradient of each element.
  T share_of_sum(const Dims& d) const {
    return fixed ? T{0} : 1 / static_cast<T>(std::max<int64_t>(1, d.per_channel()));
  }
  void give(KernelContext& c, const Dims& d, const T* sum_g, const T* sum_gx) const {
    if (T* out = needed<T>(c, dbias)) std::copy(sum_g, sum_g + d.channels, out);
    if (T* out = needed<T>(c, dscale)) std::copy(sum_gx, sum_gx + d.channels, out);
  }
};

// The same for images in blocked layout.
Kernel blocked_forward(const KernelArgs& op, bool relu);
Kernel blocked_backward(const KernelArgs& op);

}  // namespace anabranch::nn::batch_norm
