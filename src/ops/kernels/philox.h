// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, doi:10.1145/2063384.2063405).
// A counter-based generator: number i of a draw is a pure function of (key, i), so a tensor is filled by any number of
// threads, in any order, with the same values.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>
#include <utility>

#include "opdef/kernel_context.h"
#include "ops/kernels/uniforms.h"

namespace anabranch {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  explicit Philox(const RandomKey& key)
      : key_(mix(key.seed ^ mix(key.stream + 0x9e3779b97f4a7c15u))), step_(key.step), replica_(key.replica) {
    if (key.turns) key_ = mix(key_ ^ mix(key.turns));
  }

  // Four independent 32-bit numbers.
  Block block(uint64_t index) const {
    return bijection({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step_, replica_}, key_);
  }

  // The ten rounds of the paper.
  static Block bijection(Block x, uint64_t key) {
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * x[0], p1 = uint64_t{0xCD9E8D57u} * x[2];
      x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return x;
  }

  // Number i of the draw, uniform in [0, 1), with 24 random bits. For loops over runs of i use each_uniform.
  float uniform(uint64_t i) const { return to_unit(block(i / 4)[i % 4]); }
  static float to_unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

  // fn(i, u) for i in [begin, end), u = uniform(i).
  template <class Fn> void each_uniform(int64_t begin, int64_t end, Fn&& fn) const {
    each_run(begin, end, [&](int64_t from, int64_t to, const float* u) {
      for (int64_t i = from; i < to; ++i) fn(i, u[i - from]);
    });
  }

  // fn(from, to, u) for runs that cover [begin, end), u[k] = uniform(from + k).
  template <class Fn> void each_run(int64_t begin, int64_t end, Fn&& fn) const {
    constexpr int64_t kRun = 4 * kUniformBlocks;
    alignas(64) float u[kRun];
    for (int64_t first = begin / 4 * 4; first < end; first += kRun) {
      uniform_blocks({key_, step_, replica_}, static_cast<uint64_t>(first) / 4, u);
      const int64_t from = first < begin ? begin : first, to = first + kRun < end ? first + kRun : end;
      fn(from, to, static_cast<const float*>(u + (from - first)));
    }
  }

  // Number i of the draw, normal with mean 0 and deviation 1: Box & Muller, doi:10.1214/aoms/1177706645, with 53-bit
  // uniforms, so that the tails reach beyond eight deviations.
  double normal(uint64_t i) const { return normal_pair(i / 2)[i % 2]; }

  // out[i - begin] = fn(i, normal(i)) for i in [begin, end). fn(i, z) must rise, or fall, with z throughout: for
  // float32 z is computed by vectors, and again by the C library where the two may be rounded apart.
  template <class T, class Fn> void each_normal(int64_t begin, int64_t end, T* out, Fn&& fn) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kRun = 2 * kUniformBlocks;
      alignas(64) double z[kRun], margin[kRun];
      alignas(64) float low[kRun], high[kRun];
      for (int64_t first = begin / 2 * 2; first < end; first += kRun) {
        near_normal_blocks({key_, step_, replica_}, static_cast<uint64_t>(first) / 2, z, margin);
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
        const auto z = normal_pair(static_cast<uint64_t>(first) / 2);
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
      uniform53_blocks({key_, step_, replica_}, static_cast<uint64_t>(first) / 2, u);
      const int64_t from = first < begin ? begin : first, to = first + kRun < end ? first + kRun : end;
      for (int64_t i = from; i < to; ++i) fn(i, u[i - first]);
    }
  }

  // Number i of the draw, uniform in [0, 1), with 53 random bits.
  double uniform53(uint64_t i) const {
    const auto [u, v] = uniform_pair(i / 2);
    return i % 2 ? v : u;
  }

 private:
  std::array<double, 2> normal_pair(uint64_t index) const {
    const auto [u, v] = uniform_pair(index);
    const double radius = std::sqrt(-2.0 * std::log1p(-u)), angle = 2.0 * std::numbers::pi * v;
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

  std::pair<double, double> uniform_pair(uint64_t index) const {
    const Block b = block(index);
    const auto wide = [](uint32_t hi, uint32_t lo) {
      return static_cast<double>(((uint64_t{hi} << 32) | lo) >> 11) * 0x1p-53;
    };
    return {wide(b[0], b[1]), wide(b[2], b[3])};
  }

  // Finalizer of splitmix64 (Steele et al., OOPSLA 2014, doi:10.1145/2660193.2660195): near keys become far ones.
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  uint64_t key_;
  uint32_t step_, replica_;
};

// The key of this run of an op: the factory knows seed and stream, the step knows the rest.
inline RandomKey with_step(RandomKey key, const KernelContext& c) {
  if (key.repeats) return key;
  key.step = c.step;
  key.replica = static_cast<uint32_t>(c.replica);
  key.turns = TurnContext::turns_of(c);
  return key;
}

}  // namespace anabranch
