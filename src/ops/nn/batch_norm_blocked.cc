// batch_norm of images in blocked layout: a chunk holds the pixels of one block of channels of one sample. Statistics
// of chunks are computed in the cache and joined in the order of the samples, in double.
#include "ops/kernels/simd.h"
#include "ops/kernels/wide.h"
#include "ops/nn/batch_norm.h"
#include "ops/nn/blocked.h"

namespace anabranch::nn::batch_norm {
namespace {

struct Chunks {
  int64_t width, samples, blocks, pixels;
  const blocked::Loops& loops = blocked::loops();
  explicit Chunks(const Dims& d)
      : width(channel_block()), samples(d.outer), blocks(d.channels / width), pixels(d.inner) {}
  int64_t count() const { return samples * blocks; }
  int64_t elems() const { return pixels * width; }

  // fn(at, per_chunk, channel): of a chunk the first element, its place in a list of B numbers per chunk, and the first
  // channel.
  template <class Fn> void each(KernelContext& c, Fn&& fn) const {
    c.parallel_each(count(), kGrain / std::max<int64_t>(1, elems()) + 1,
                    [&](int64_t i) { fn(i * elems(), i * width, i % blocks * width); });
  }
};

struct BlockedForward : Forward<float> {
  using Forward<float>::Forward;
  std::vector<float> means, squares;  // per chunk: mean, and sum of squares around it

  void measure_chunks(KernelContext& c, const Chunks& k, const float* data) {
    means.resize(static_cast<size_t>(k.count() * k.width));
    squares.resize(means.size());
    k.each(c, [&](int64_t at, int64_t to, int64_t) {
      float* m = means.data() + to;
      k.loops.sum(data + at, k.pixels, m);
      for (int64_t ch = 0; ch < k.width; ++ch) m[ch] /= static_cast<float>(k.pixels);
      k.loops.sum_squares(data + at, m, k.pixels, squares.data() + to);
    });
  }

  // Joins the chunks of a channel (Chan, Golub & LeVeque, 1983, doi:10.1080/00031305.1983.10483115).
  void measure_blocked(KernelContext& c, const Chunks& k, const float* data, float* m, float* v) {
    measure_chunks(c, k, data);
    const int64_t channels = k.blocks * k.width;
    channel_sums.assign(static_cast<size_t>(2 * channels), 0.0);
    double *mean_of_all = channel_sums.data(), *around = mean_of_all + channels;
    const auto n = static_cast<double>(k.pixels);
    in_wide_vectors([=, this] {
      for (int64_t s = 0; s < k.samples; ++s) {
        const float *mean_of = means.data() + s * channels, *squares_of = squares.data() + s * channels;
        const double before = static_cast<double>(s) * n;
        for (int64_t ch = 0; ch < channels; ++ch) {
          const double delta = static_cast<double>(mean_of[ch]) - mean_of_all[ch];
          mean_of_all[ch] += delta * n / (before + n);
          around[ch] += static_cast<double>(squares_of[ch]) + delta * delta * before * n / (before + n);
        }
      }
    });
    for (int64_t ch = 0; ch < channels; ++ch) {
      m[ch] = static_cast<float>(mean_of_all[ch]);
      v[ch] = static_cast<float>(around[ch] / (static_cast<double>(k.samples) * n));
    }
  }

  void operator()(KernelContext& c) {
    const Dims d(c[x].shape(), false);
    const Chunks k(d);
    const Statistics stats = statistics(c, d);
    const float* data = c[x].data<float>();
    float* to = vector(c, y);
    if (stats.measured) measure_blocked(c, k, data, stats.own_m, stats.own_v);
    for (int64_t ch = 0; ch < d.channels; ++ch) settle(stats, ch);
    k.each(c, [&](int64_t at, int64_t, int64_t ch) {
      k.loops.affine(data + at, factor.data() + ch, offset.data() + ch, k.pixels, to + at);
      if (relu) simd::relu(to + at, to + at, k.elems());
    });
  }
};

struct BlockedBackward : Backward<float> {
  using Backward<float>::Backward;
  std::vector<float> parts;    // sums of dy and of dy (x - mean), per chunk
  std::vector<float> scratch;  // Y@GRAD where Y > 0, unless X@GRAD holds it

  // Y@GRAD where Y > 0; if X@GRAD is requested, its memory holds these values first.
  float* room_for_masked(KernelContext& c) {
    if (!y) return nullptr;
    if (c.needs(dx)) return c[dx].mutable_data<float>();
    scratch.resize(static_cast<size_t>(c[dy].numel()));
    return scratch.data();
  }

  // Sums of dy and of dy (x - mean) / deviation, per channel.
  void sum_blocked(KernelContext& c, const Chunks& k, Gradient<float> g, const float* data, const float* m,
                   const float* inv, float* masked, float* sum_g, float* sum_gx) {
    const int64_t channels = k.blocks * k.width;
    parts.resize(static_cast<size_t>(2 * k.samples * channels));
    float *part_g = parts.data(), *part_gx = part_g + k.samples * channels;
    k.each(c, [&](int64_t at, int64_t to, int64_t ch) {
      if (masked) simd::relu_grad(g.y + at, g.dy + at, masked + at, k.elems());
      k.loops.sum_products((masked ? masked : g.dy) + at, data + at, m + ch, k.pixels, part_g + to, part_gx + to);
    });
    channel_sums.assign(static_cast<size_t>(2 * channels), 0.0);
    double *all_g = channel_sums.data(), *all_gx = all_g + channels;
    in_wide_vectors([=] {
      for (int64_t at = 0; at < k.samples * channels; at += channels) {
        for (int64_t ch = 0; ch < channels; ++ch) all_g[ch] += static_cast<double>(part_g[at + ch]);
        for (int64_t ch = 0; ch < channels; ++ch) all_gx[ch] += static_cast<double>(part_gx[at + ch]);
      }
    });
    for (int64_t ch = 0; ch < channels; ++ch) {
      sum_g[ch] = static_cast<float>(all_g[ch]);
      sum_gx[ch] = static_cast<float>(all_gx[ch] * static_cast<double>(inv[ch]));
    }
  }

  // dx = s inv (dy - mean(dy) - (x - m) inv mean(dy xhat)), as dy a + x b + c per channel.
  void operator()(KernelContext& c) {
    const Dims d(c[x].shape(), false);
    const Chunks k(d);
    const Gradient<float> g = gradient(c);
    if (passes_through(d, fixed)) return pass(c, d, g);
    const float *data = c[x].data<float>(), *s = c[scale].data<float>();
    const float *m = mean_used(c), *inv = inverse_deviation(c, d.channels);
    per_channel.resize(static_cast<size_t>(5 * d.channels));
    float *sum_g = per_channel.data(), *sum_gx = sum_g + d.channels;
    float *a = sum_gx + d.channels, *b = a + d.channels, *offset = b + d.channels;
    float* masked = room_for_masked(c);
    sum_blocked(c, k, g, data, m, inv, masked, sum_g, sum_gx);
    give(c, d, sum_g, sum_gx);
    if (!c.needs(dx)) return;
    const float share = share_of_sum(d);
    for (int64_t ch = 0; ch < d.channels; ++ch) {
      const float factor = s[ch] * inv[ch], slope = sum_gx[ch] * share * inv[ch];
      a[ch] = factor;
      b[ch] = -factor * slope;
      offset[ch] = factor * (m[ch] * slope - sum_g[ch] * share);
    }
    float* to = c[dx].mutable_data<float>();
    k.each(c, [&](int64_t at, int64_t, int64_t ch) {
      k.loops.combine((masked ? masked : g.dy) + at, data + at, a + ch, b + ch, offset + ch, k.pixels, to + at);
    });
  }
};

}  // namespace

Kernel blocked_forward(const KernelArgs& op, bool relu) { return BlockedForward(op, relu); }
Kernel blocked_backward(const KernelArgs& op) { return BlockedBackward(op); }

}  // namespace anabranch::nn::batch_norm
