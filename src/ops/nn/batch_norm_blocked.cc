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
  explicit Chunks(const Dims& d)
      : width(channel_block()), samples(d.outer), blocks(d.channels / width), pixels(d.inner) {}
  int64_t count() const { return samples * blocks; }
  int64_t elems() const { return pixels * width; }
  int64_t grain() const { return kGrain / std::max<int64_t>(1, elems()) + 1; }
  int64_t channel(int64_t chunk) const { return chunk % blocks * width; }
};

struct BlockedForward : Forward<float> {
  std::vector<float> means, squares;  // per chunk: mean, and sum of squares around it

  bool relu;

  BlockedForward(const KernelArgs& op, bool with_relu) : Forward<float>(op), relu(with_relu) {}

  void measure_chunks(KernelContext& c, const Chunks& k, const float* data) {
    means.resize(static_cast<size_t>(k.count() * k.width));
    squares.resize(means.size());
    c.parallel_for(k.count(), k.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = data + i * k.elems();
        float* m = means.data() + i * k.width;
        blocked::sum(from, k.pixels, m);
        for (int64_t ch = 0; ch < k.width; ++ch) m[ch] /= static_cast<float>(k.pixels);
        blocked::sum_squares(from, m, k.pixels, squares.data() + i * k.width);
      }
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
    const float* data = c[x].data<float>();
    float* to = vector(c, y);
    run(
        c, d, [&](float* m, float* v) { measure_blocked(c, k, data, m, v); },
        [&](const float* f, const float* o) {
          c.parallel_for(k.count(), k.grain(), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t ch = k.channel(i), at = i * k.elems();
              blocked::affine(data + at, f + ch, o + ch, k.pixels, to + at);
              if (relu) simd::relu(to + at, to + at, k.elems());
            }
          });
        });
  }
};

struct BlockedBackward : Backward<float> {
  std::vector<float> parts, both, coefficients;  // sums of dy and of dy (x - mean), per chunk and all; a, b, c

  In y;                        // given with relu
  std::vector<float> scratch;  // Y@GRAD where Y > 0, unless X@GRAD holds it

  BlockedBackward(const KernelArgs& op, bool relu) : Backward<float>(op) {
    if (relu) y = op.in("Y");
  }

  // Y@GRAD where Y > 0; if X@GRAD is requested, its memory holds these values first.
  float* room_for_masked(KernelContext& c) {
    if (!y) return nullptr;
    if (c.needs(dx)) return c[dx].mutable_data<float>();
    scratch.resize(static_cast<size_t>(c[dy].numel()));
    return scratch.data();
  }

  // Sums of dy and of dy (x - mean) / deviation, per channel.
  void sum_blocked(KernelContext& c, const Chunks& k, const float* data, const float* g, const float* m,
                   const float* inv, float* masked, float* sum_g, float* sum_gx) {
    const float* out = masked ? c[y].data<float>() : nullptr;
    const int64_t channels = k.blocks * k.width;
    parts.resize(static_cast<size_t>(2 * k.samples * channels));
    float *part_g = parts.data(), *part_gx = part_g + k.samples * channels;
    c.parallel_for(k.count(), k.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * k.elems(), to = i * k.width;
        if (masked) simd::relu_grad(out + at, g + at, masked + at, k.elems());
        blocked::sum_products((masked ? masked : g) + at, data + at, m + k.channel(i), k.pixels, part_g + to,
                              part_gx + to);
      }
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

  void operator()(KernelContext& c) {
    const Dims d(c[x].shape(), false);
    const Chunks k(d);
    const float *data = c[x].data<float>(), *g = c[dy].data<float>(), *s = c[scale].data<float>();
    if (passes_through(d, fixed)) return pass(c, d, {g, y ? c[y].data<float>() : nullptr});
    const float* m = (fixed && mean ? c[mean] : c[saved_mean]).data<float>();
    const float* inv = inverse_deviation(c, d.channels);
    both.resize(static_cast<size_t>(2 * d.channels));
    float *sum_g = both.data(), *sum_gx = both.data() + d.channels;
    float* masked = room_for_masked(c);
    sum_blocked(c, k, data, g, m, inv, masked, sum_g, sum_gx);
    if (c.needs(dbias)) std::copy(sum_g, sum_g + d.channels, c[dbias].mutable_data<float>());
    if (c.needs(dscale)) std::copy(sum_gx, sum_gx + d.channels, c[dscale].mutable_data<float>());
    if (!c.needs(dx)) return;
    write_dx(c, k, data, masked ? masked : g, m, inv, s);
  }

  // dx = s inv (dy - mean(dy) - (x - m) inv mean(dy xhat)), as dy a + x b + c per channel.
  void write_dx(KernelContext& c, const Chunks& k, const float* data, const float* g, const float* m, const float* inv,
                const float* s) {
    const int64_t channels = k.blocks * k.width;
    coefficients.resize(static_cast<size_t>(3 * channels));
    float *a = coefficients.data(), *b = a + channels, *offset = b + channels;
    const float* sum_g = both.data();
    const float* sum_gx = both.data() + channels;
    const float share = fixed ? 0.0f : 1.0f / static_cast<float>(std::max<int64_t>(1, k.samples * k.pixels));
    for (int64_t ch = 0; ch < channels; ++ch) {
      const float factor = s[ch] * inv[ch], slope = sum_gx[ch] * share * inv[ch];
      a[ch] = factor;
      b[ch] = -factor * slope;
      offset[ch] = factor * (m[ch] * slope - sum_g[ch] * share);
    }
    float* to = c[dx].mutable_data<float>();
    c.parallel_for(k.count(), k.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t ch = k.channel(i), at = i * k.elems();
        blocked::combine(g + at, data + at, a + ch, b + ch, offset + ch, k.pixels, to + at);
      }
    });
  }
};

}  // namespace

Kernel blocked_forward(const KernelArgs& op, bool relu) { return BlockedForward(op, relu); }
Kernel blocked_backward(const KernelArgs& op, bool relu) { return BlockedBackward(op, relu); }

}  // namespace anabranch::nn::batch_norm
