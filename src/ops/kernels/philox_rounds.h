// The arithmetic of Philox4x32-10 (Salmon et al., SC 2011, doi:10.1145/2063384.2063405), for one number at a time:
// number i of a draw is a pure function of (key, i).
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ops/device/element.h"

namespace anabranch::philox {

using Block = std::array<uint32_t, 4>;

// Finalizer of splitmix64 (Steele et al., OOPSLA 2014, doi:10.1145/2660193.2660195): maps close keys far apart.
AB_HD inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// iterations: of the enclosing loops, hashed; 0 outside of loops.
AB_HD inline uint64_t key_of(uint64_t seed, uint64_t stream, uint64_t iterations) {
  const uint64_t key = mix(seed ^ mix(stream + 0x9e3779b97f4a7c15u));
  return iterations ? mix(key ^ mix(iterations)) : key;
}

// The ten rounds of the paper.
AB_HD inline Block bijection(Block x, uint64_t key) {
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

// Uniform in [0, 1), with 24 random bits; with 53.
AB_HD inline float to_unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
AB_HD inline double to_unit53(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// The random numbers of one run of an op.
struct Draw {
  uint64_t key;
  uint32_t step, replica;

  // Four independent 32-bit numbers.
  AB_HD Block block(uint64_t index) const {
    return bijection({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step, replica}, key);
  }
  // Number i, uniform in [0, 1), with 24 random bits.
  AB_HD float uniform(uint64_t i) const { return to_unit(block(i / 4)[i % 4]); }
  // Number i, uniform in [0, 1), with 53 random bits.
  AB_HD double uniform53(uint64_t i) const {
    const Block b = block(i / 2);
    return i % 2 ? to_unit53(b[2], b[3]) : to_unit53(b[0], b[1]);
  }
  // Normal numbers 2 index and 2 index + 1, with mean 0 and standard deviation 1: Box & Muller,
  // doi:10.1214/aoms/1177706645, with 53-bit uniforms, so that the tails reach beyond eight standard deviations.
  AB_HD std::array<double, 2> normal_pair(uint64_t index) const {
    const Block b = block(index);
    const double radius = std::sqrt(-2.0 * std::log1p(-to_unit53(b[0], b[1])));
    const double angle = 2.0 * std::numbers::pi * to_unit53(b[2], b[3]);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }
  AB_HD double normal(uint64_t i) const { return normal_pair(i / 2)[i % 2]; }
};

}  // namespace anabranch::philox
