// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, doi:10.1145/2063384.2063405). A
// counter-based generator: number i of a draw is a pure function of (key, i), so any number of threads can fill a
// tensor in any order with the same values.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "opdef/kernel_context.h"
#include "ops/kernels/philox_rounds.h"
#include "ops/kernels/uniforms.h"

namespace anabranch {

class Philox {
 public:
  using Block = philox::Block;

  explicit Philox(const RandomKey& key)
      : draw_{philox::key_of(key.seed, key.stream, key.iterations), key.step, key.replica} {}

  // Four independent 32-bit numbers.
  Block block(uint64_t index) const { return draw_.block(index); }

  // The ten rounds of the paper.
  static Block bijection(Block x, uint64_t key) { return philox::bijection(x, key); }

  // Number i of the draw, uniform in [0, 1), with 24 random bits. For loops over runs of i use each_uniform.
  float uniform(uint64_t i) const { return draw_.uniform(i); }

  // fn(i, u) for i in [begin, end), u = uniform(i).
  template <class Fn> void each_uniform(int64_t begin, int64_t end, Fn&& fn) const {
    each_run(begin, end, [&](int64_t from, int64_t to, const float* u) {
      for (int64_t i = from; i < to; ++i) fn(i, u[i - from]);
    });
  }

  // Calls fn(from, to, u) for runs that cover [begin, end), with u[k] = uniform(from + k).
  template <class Fn> void each_run(int64_t begin, int64_t end, Fn&& fn) const {
    constexpr int64_t kRun = 4 * kUniformBlocks;
    alignas(64) float u[kRun];
    for (int64_t first = begin / 4 * 4; first < end; first += kRun) {
      uniform_blocks(vector_key(), static_cast<uint64_t>(first) / 4, u);
      const int64_t from = first < begin ? begin : first, to = first + kRun < end ? first + kRun : end;
      fn(from, to, static_cast<const float*>(u + (from - first)));
    }
  }

  // Number i of the draw, normal with mean 0 and standard deviation 1.
  double normal(uint64_t i) const { return draw_.normal(i); }

  // out[i - begin] = fn(i, normal(i)) for i in [begin, end). fn(i, z) must be monotonic in z: for float32, vectors
  // compute z, and the C library recomputes it where the two may round differently.
  template <class T, class Fn> void each_normal(int64_t begin, int64_t end, T* out, Fn&& fn) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kRun = 2 * kUniformBlocks;
      alignas(64) double z[kRun], margin[kRun];
      alignas(64) float low[kRun], high[kRun];
      for (int64_t first = begin / 2 * 2; first < end; first += kRun) {
        near_normal_blocks(vector_key(), static_cast<uint64_t>(first) / 2, z, margin);
        const int64_t from = first < begin ? begin : first, to = first + kRun < end ? first + kRun : end;
        for (int64_t i = from; i < to; ++i) low[i - from] = fn(i, z[i - first] - margin[i - first]);
        for (int64_t i = from; i < to; ++i) high[i - from] = fn(i, z[i - first] + margin[i - first]);
        for (int64_t i = from; i < to; ++i) {
          const bool sure = std::bit_cast<uint32_t>(low[i - from]) == std::bit_cast<uint32_t>(high[i - from]);
          out[i - begin] = sure ? low[i - from] : fn(i, normal(static_cast<uint64_t>(i)));
        }
      }
    } else {
      for (int64_t first = begin / 2 * 2; first < end; first += 2) {
        const auto z = draw_.normal_pair(static_cast<uint64_t>(first) / 2);
        if (first >= begin) out[first - begin] = fn(first, z[0]);
        if (first + 1 < end) out[first + 1 - begin] = fn(first + 1, z[1]);
      }
    }
  }

  // fn(i, u) for i in [begin, end), u = uniform53(i).
  template <class Fn> void each_uniform53(int64_t begin, int64_t end, Fn&& fn) const {
    constexpr int64_t kRun = 2 * kUniformBlocks;
    alignas(64) double u[kRun];
    for (int64_t first = begin / 2 * 2; first < end; first += kRun) {
      uniform53_blocks(vector_key(), static_cast<uint64_t>(first) / 2, u);
      const int64_t from = first < begin ? begin : first, to = first + kRun < end ? first + kRun : end;
      for (int64_t i = from; i < to; ++i) fn(i, u[i - first]);
    }
  }

  // Number i of the draw, uniform in [0, 1), with 53 random bits.
  double uniform53(uint64_t i) const { return draw_.uniform53(i); }

 private:
  PhiloxKey vector_key() const { return {draw_.key, draw_.step, draw_.replica}; }

  philox::Draw draw_;
};

// The key of this run of an op: seed and stream from the factory, the rest from the step.
inline RandomKey with_step(RandomKey key, const KernelContext& c) {
  if (key.repeats) return key;
  key.step = c.step;
  key.replica = static_cast<uint32_t>(c.replica);
  key.iterations = IterationContext::iterations_of(c);
  return key;
}

}  // namespace anabranch
