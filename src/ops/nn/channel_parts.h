// Parts of a tensor for the loops of batch normalization (channel_loops.h), and the threads that work on them. All
// parts depend on the shape alone, so that bits do not depend on the number of threads.
#pragma once
#include <algorithm>
#include <vector>

#include "opdef/kernel_context.h"
#include "ops/nn/channel_loops.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::batch_norm {

inline constexpr int64_t kGrain = 8192;
inline constexpr int64_t kMaxChunks = 16;
inline constexpr int64_t kAdjacent = 4096;  // elements

using Dims = Channels;
using channel_loops::Part;

// Whether the channels are the last axis, so that threads share rows instead of channels.
inline bool by_rows(const Dims& d) { return d.inner == 1; }

// All elements of `channels`, of which the first is element `first * d.inner`; some rows of all channels.
inline Part channels_of(const Dims& d, int64_t channels) { return {d.outer, d.channels * d.inner, channels, d.inner}; }
inline Part rows_of(const Dims& d, int64_t rows) { return {rows, d.channels * d.inner, d.channels, d.inner}; }

// fn(part, first): some channels. Processors prefetch what is adjacent in memory: rows of a part are long if that
// leaves eight parts.
template <class Fn> void each_group(KernelContext& c, const Dims& d, Fn&& fn) {
  const auto up = [](int64_t n, int64_t by) { return (n + by - 1) / std::max<int64_t>(1, by); };
  const int64_t adjacent = std::min(up(kAdjacent, d.inner), up(d.channels, 8));
  const int64_t grain = std::max(adjacent, kGrain / std::max<int64_t>(1, d.per_channel()) + 1);
  c.parallel_for(d.channels, grain, [&](int64_t begin, int64_t end) { fn(channels_of(d, end - begin), begin); });
}

// fn(rows, begin): `rows` from element `begin` on.
template <class Fn> void each_chunk_of_rows(KernelContext& c, const Dims& d, Fn&& fn) {
  const int64_t row = d.channels * d.inner;
  c.parallel_for(d.outer, kGrain / std::max<int64_t>(1, row) + 1,
                 [&](int64_t begin, int64_t end) { fn(rows_of(d, end - begin), begin * row); });
}

// Whether a thread reads the elements of channels again for the results as soon as it has their sums. If channels are
// few and long, threads share rows instead.
inline bool at_once(const Dims& d) {
  return d.channels >= std::min(kMaxChunks, d.outer) || d.per_channel() <= 4 * kGrain;
}

// Sums of rows, `kSums` per channel: chunks of rows have their own, which are added up in order.
class RowSums {
 public:
  // add(rows, begin, sums): adds to sums[s * d.channels + channel]. out[s * d.channels + channel].
  template <class T, class Add> void run(KernelContext& c, const Dims& d, int kSums, const Add& add, T* out) {
    const int64_t width = kSums * d.channels;
    const int64_t step =
        std::max((d.outer + kMaxChunks - 1) / kMaxChunks, kGrain / std::max<int64_t>(1, d.channels) + 1);
    const int64_t chunks = (d.outer + step - 1) / step;
    sums_.assign(static_cast<size_t>(std::max<int64_t>(1, chunks) * width), 0.0);
    double* sums = sums_.data();
    c.parallel_each(chunks, 1, [&](int64_t p) {
      const int64_t rows = std::min(step, d.outer - p * step);
      add(rows_of(d, rows), p * step * d.channels, sums + p * width);
    });
    for (int64_t p = 1; p < chunks; ++p) {
      for (int64_t k = 0; k < width; ++k) sums[k] += sums[p * width + k];
    }
    for (int64_t k = 0; k < width; ++k) out[k] = static_cast<T>(sums[k]);
  }

 private:
  std::vector<double> sums_;
};

}  // namespace anabranch::nn::batch_norm
