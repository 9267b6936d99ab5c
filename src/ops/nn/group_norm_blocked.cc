// group_norm and instance_norm of images in blocked layout: a task computes the fewest channels of one sample that are
// both whole blocks and whole groups.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/outputs.h"
#include "ops/nn/blocked.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/group_norm_loops.h"

namespace anabranch::nn::group_norm {
namespace {

struct Spans {
  GroupDims d;
  int64_t block = channel_block();  // channels of a block,
  int64_t span;                     // and of a task
  const blocked::Loops& loops = blocked::loops();

  Spans(const Shape& x, int64_t groups) : d(x, false, groups), span(std::lcm(block, d.width())) {}
  int64_t per_sample() const { return d.channels / span; }
  int64_t elems() const { return span * d.inner; }

  // fn(sample, first channel of the task)
  template <class Fn> void each(const KernelContext& c, Fn&& fn) const {
    c.parallel_each(d.samples * per_sample(), kCheapGrain / std::max<int64_t>(1, elems()) + 1,
                    [&](int64_t i) { fn(i / per_sample(), i % per_sample() * span); });
  }
  // fn(first element, first channel) for each block of a task.
  template <class Fn> void each_block(int64_t sample, int64_t first, Fn&& fn) const {
    for (int64_t ch = first; ch < first + span; ch += block) fn((sample * d.channels + ch) * d.inner, ch);
  }
  // The sum over the channels of a group, of numbers by channel.
  template <class Term> double sum(int64_t group, Term term) const {
    double total = 0;
    for (int64_t ch = group * d.width(); ch < (group + 1) * d.width(); ++ch) total += static_cast<double>(term(ch));
    return total;
  }
  // fn(group, channel) for each group of a task, and each of its channels.
  template <class Fn> void each_channel(int64_t first, Fn&& fn) const {
    const int64_t width = std::max<int64_t>(1, d.width());
    for (int64_t ch = first; ch < first + span; ++ch) fn(ch / width, ch);
  }
};

// Numbers by sample and channel.
struct Numbers {
  std::vector<float> values;
  int64_t channels = 0;
  void resize(const GroupDims& d) {
    channels = d.channels;
    values.resize(static_cast<size_t>(d.samples * d.channels));
  }
  float* of(int64_t sample) { return values.data() + sample * channels; }
};

class Forward {
 public:
  Forward(const KernelArgs& op, const Form& form)
      : x_(op.in("X")),
        scale_(op.in("Scale")),
        bias_(op.in("Bias")),
        y_(op.out("Y")),
        mean_(op.out(form.mean)),
        variance_(op.out(form.variance)),
        inverse_(form.inverse),
        groups_(groups_of(op.op())),
        epsilon_(op.attr<float>("epsilon")) {}

  void operator()(KernelContext& c) {
    const Spans k(c[x_].shape(), groups_);
    float *mean = c[mean_].mutable_data<float>(), *variance = c[variance_].mutable_data<float>();
    if (k.elems() == 0) {
      std::fill_n(mean, c[mean_].numel(), 0.0f);
      std::fill_n(variance, c[variance_].numel(), 0.0f);
      return;
    }
    for (Numbers* numbers : {&sums_, &factor_, &offset_}) numbers->resize(k.d);
    k.each(c, [&](int64_t n, int64_t first) {
      compute(c, k, n, first, mean + n * k.d.groups, variance + n * k.d.groups);
    });
  }

 private:
  void compute(const KernelContext& c, const Spans& k, int64_t n, int64_t first, float* mean, float* variance) {
    const float *x = c[x_].data<float>(), *scale = scale_ ? c[scale_].data<float>() : nullptr,
                *bias = bias_ ? c[bias_].data<float>() : nullptr;
    float *sums = sums_.of(n), *factor = factor_.of(n), *offset = offset_.of(n), *y = c[y_].mutable_data<float>();
    const auto count = static_cast<double>(k.d.count());
    k.each_block(n, first, [&](int64_t at, int64_t ch) { k.loops.sum(x + at, k.d.inner, sums + ch); });
    for (int64_t g = first / k.d.width(); g < (first + k.span) / k.d.width(); ++g) {
      mean[g] = static_cast<float>(k.sum(g, [=](int64_t ch) { return sums[ch]; }) / count);
    }
    k.each_channel(first, [=](int64_t g, int64_t ch) { offset[ch] = mean[g]; });
    k.each_block(n, first,
                 [&](int64_t at, int64_t ch) { k.loops.sum_squares(x + at, offset + ch, k.d.inner, sums + ch); });
    for (int64_t g = first / k.d.width(); g < (first + k.span) / k.d.width(); ++g) {
      const auto found = static_cast<float>(k.sum(g, [=](int64_t ch) { return sums[ch]; }) / count);
      const float inv = 1 / std::sqrt(found + epsilon_);
      variance[g] = inverse_ ? inv : found;
      for (int64_t ch = g * k.d.width(); ch < (g + 1) * k.d.width(); ++ch) {
        factor[ch] = inv * (scale ? scale[ch] : 1.0f);
        offset[ch] = (bias ? bias[ch] : 0.0f) - mean[g] * factor[ch];
      }
    }
    k.each_block(n, first,
                 [&](int64_t at, int64_t ch) { k.loops.affine(x + at, factor + ch, offset + ch, k.d.inner, y + at); });
  }

  In x_, scale_, bias_;
  Out y_, mean_, variance_;
  bool inverse_;
  int64_t groups_;
  float epsilon_;
  Numbers sums_, factor_, offset_;
};

// With xhat = (v - center) slope: v is X, or Y if X is not given. Then a scale of 0 has erased xhat.
class Backward {
 public:
  Backward(const KernelArgs& op, const Form& form)
      : source_(op, form),
        v_(op.in(source_.of_y ? "Y" : "X")),
        scale_(op.in("Scale")),
        bias_(source_.of_y ? op.in("Bias") : In{}),
        mean_(source_.of_y ? In{} : op.in(form.mean)),
        variance_(op.in(form.variance)),
        dy_(op.in("Y@GRAD")),
        dx_(op.out("X@GRAD")),
        dscale_(op.out("Scale@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        inverse_(form.inverse),
        groups_(groups_of(op.op())),
        epsilon_(op.attr<float>("epsilon")) {}

  void operator()(KernelContext& c) {
    const Spans k(c[v_].shape(), groups_);
    float *dscale = zeroed<float>(c, dscale_), *dbias = zeroed<float>(c, dbias_);
    if (k.elems() == 0) return;
    for (Numbers* numbers : {&center_, &slope_, &of_v_, &offset_, &sum_g_, &sum_gx_}) numbers->resize(k.d);
    k.each(c, [&](int64_t n, int64_t first) { compute(c, k, n, first); });
    for (int64_t ch = 0; ch < k.d.channels; ++ch) {
      if (dscale) dscale[ch] = over_samples(k, sum_gx_, ch);
      if (dbias) dbias[ch] = over_samples(k, sum_g_, ch);
    }
  }

 private:
  static float over_samples(const Spans& k, Numbers& numbers, int64_t ch) {
    double total = 0;
    for (int64_t n = 0; n < k.d.samples; ++n) total += static_cast<double>(numbers.of(n)[ch]);
    return static_cast<float>(total);
  }

  void compute(const KernelContext& c, const Spans& k, int64_t n, int64_t first) {
    const float *v = c[v_].data<float>(), *dy = c[dy_].data<float>(),
                *scale = scale_ ? c[scale_].data<float>() : nullptr;
    float *center = center_.of(n), *slope = slope_.of(n), *g = sum_g_.of(n), *gx = sum_gx_.of(n);
    find_xhat(c, k, n, first);
    k.each_block(n, first, [&](int64_t at, int64_t ch) {
      k.loops.sum_products(dy + at, v + at, center + ch, k.d.inner, g + ch, gx + ch);
    });
    k.each_channel(first, [=](int64_t, int64_t ch) { gx[ch] *= slope[ch]; });
    float* dx = needed<float>(c, dx_);
    if (!dx) return;
    float *of_v = of_v_.of(n), *offset = offset_.of(n), *of_dy = center;  // center is not needed after its last use
    const auto count = static_cast<double>(k.d.count());
    const auto scaled = [=](int64_t ch) { return scale ? scale[ch] : 1.0f; };
    for (int64_t group = first / k.d.width(); group < (first + k.span) / k.d.width(); ++group) {
      const float inv = deviation(c, k, n, group);
      const double all_g = k.sum(group, [=](int64_t ch) { return scaled(ch) * g[ch]; }),
                   all_gx = k.sum(group, [=](int64_t ch) { return scaled(ch) * gx[ch]; });
      const float mean_h = source_.centered ? static_cast<float>(all_g / count) : 0.0f,
                  mean_hx = static_cast<float>(all_gx / count);
      for (int64_t ch = group * k.d.width(); ch < (group + 1) * k.d.width(); ++ch) {
        of_v[ch] = -inv * slope[ch] * mean_hx;
        offset[ch] = -inv * mean_h - of_v[ch] * center[ch];
        of_dy[ch] = inv * scaled(ch);
      }
    }
    k.each_block(n, first, [&](int64_t at, int64_t ch) {
      k.loops.combine(dy + at, v + at, of_dy + ch, of_v + ch, offset + ch, k.d.inner, dx + at);
    });
  }

  float deviation(const KernelContext& c, const Spans& k, int64_t n, int64_t group) const {
    const float given = c[variance_].data<float>()[n * k.d.groups + group];
    return inverse_ ? given : 1 / std::sqrt(given + epsilon_);
  }

  void find_xhat(const KernelContext& c, const Spans& k, int64_t n, int64_t first) {
    float *center = center_.of(n), *slope = slope_.of(n);
    const float *scale = scale_ ? c[scale_].data<float>() : nullptr, *bias = bias_ ? c[bias_].data<float>() : nullptr;
    const float* mean = mean_ ? c[mean_].data<float>() + n * k.d.groups : nullptr;
    k.each_channel(first, [&](int64_t group, int64_t ch) {
      if (source_.of_y) {
        center[ch] = bias ? bias[ch] : 0.0f;
        slope[ch] = scale && scale[ch] != 0 ? 1 / scale[ch] : 1.0f;
      } else {
        center[ch] = mean ? mean[group] : 0.0f;
        slope[ch] = deviation(c, k, n, group);
      }
    });
  }

  Source source_;
  In v_, scale_, bias_, mean_, variance_, dy_;
  Out dx_, dscale_, dbias_;
  bool inverse_;
  int64_t groups_;
  float epsilon_;
  Numbers center_, slope_, of_v_, offset_, sum_g_, sum_gx_;
};

}  // namespace

Kernel blocked_forward(const KernelArgs& op, const Form& form) { return Forward(op, form); }
Kernel blocked_backward(const KernelArgs& op, const Form& form) { return Backward(op, form); }

}  // namespace anabranch::nn::group_norm
