// Loops over the elements of each channel of a tensor.
#pragma once
#include <algorithm>
#include <vector>

#include "ops/kernels/sums.h"
#include "ops/kernels/wide.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::batch_norm {

inline constexpr int64_t kGrain = 8192;
inline constexpr int64_t kMaxChunks = 16;

using Dims = Channels;

// Sums of `kTerms` functions over the elements of every channel. out[t * channels + c].
//   terms(i, c, T (&values)[kTerms]): the terms of element i, of channel c
template <class T, int kTerms> class ChannelSums {
 public:
  template <class Terms> void run(KernelContext& c, const Dims& d, Terms&& terms, T* out) {
    if (d.inner != 1) {
      by_channel(c, d, terms, out);
    } else {
      by_rows(c, d, terms, out);
    }
  }

 private:
  template <class Terms> void by_channel(KernelContext& c, const Dims& d, Terms& terms, T* out) {
    c.parallel_for(d.channels, kGrain / std::max<int64_t>(1, d.per_channel()) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t ch = begin; ch < end; ++ch) {
        double sums[kTerms] = {};
        in_wide_vectors([&, own = terms] {
          for (int64_t n = 0; n < d.outer; ++n) {
            const int64_t at = (n * d.channels + ch) * d.inner;
            for (int t = 0; t < kTerms; ++t) {
              sums[t] += static_cast<double>(sum_of<T>(d.inner, [=](int64_t i) {
                T values[kTerms];
                own(at + i, ch, values);
                return values[t];
              }));
            }
          }
        });
        for (int t = 0; t < kTerms; ++t) out[t * d.channels + ch] = static_cast<T>(sums[t]);
      }
    });
  }

  // Chunks of rows depend only on their number; the sums of the chunks are added in order.
  template <class Terms> void by_rows(KernelContext& c, const Dims& d, Terms& terms, T* out) {
    const int64_t width = kTerms * d.channels;
    const int64_t step =
        std::max((d.outer + kMaxChunks - 1) / kMaxChunks, kGrain / std::max<int64_t>(1, d.channels) + 1);
    const int64_t chunks = (d.outer + step - 1) / step;
    partial_.assign(static_cast<size_t>(chunks * width), 0.0);
    c.parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        double* sums = partial_.data() + p * width;
        for (int64_t n = p * step; n < std::min(d.outer, (p + 1) * step); ++n) {
          for (int64_t ch = 0; ch < d.channels; ++ch) {
            T values[kTerms];
            terms(n * d.channels + ch, ch, values);
            for (int t = 0; t < kTerms; ++t) sums[t * d.channels + ch] += static_cast<double>(values[t]);
          }
        }
      }
    });
    for (int64_t k = 0; k < width; ++k) {
      double sum = 0;
      for (int64_t p = 0; p < chunks; ++p) sum += partial_[static_cast<size_t>(p * width + k)];
      out[k] = static_cast<T>(sum);
    }
  }

  std::vector<double> partial_;
};

// fn(begin, end, channel) over runs of elements of one channel; with channels last a run is one element. done(begin,
// end) over chunks of all elements, each after its runs.
template <class Fn, class Done> void each_run(KernelContext& c, const Dims& d, Fn&& fn, Done&& done) {
  const int64_t runs = d.outer * d.channels;
  c.parallel_for(runs, kGrain / std::max<int64_t>(1, d.inner) + 1, [&](int64_t begin, int64_t end) {
    int64_t ch = d.channels ? begin % d.channels : 0;
    for (int64_t r = begin; r < end; ++r) {
      fn(r * d.inner, (r + 1) * d.inner, ch);
      if (++ch == d.channels) ch = 0;
    }
    done(begin * d.inner, end * d.inner);
  });
}

template <class Fn> void each_run(KernelContext& c, const Dims& d, Fn&& fn) {
  each_run(c, d, fn, [](int64_t, int64_t) {});
}

}  // namespace anabranch::nn::batch_norm
