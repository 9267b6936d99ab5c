// Random classes: uniform, by rank (Zipf's law), or from a given distribution (Walker's alias method,
// doi:10.1145/355744.355749).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/kernels/philox.h"

namespace anabranch::loss {

enum class SamplerKind : int32_t { kUniform = 0, kLogUniform = 1, kCustom = 2 };

struct Sampler {
  SamplerKind kind = SamplerKind::kUniform;
  int64_t classes = 1;  // drawn from [0, classes)
  // For kCustom: probability of each class, and the alias table.
  const float *probabilities = nullptr, *keep = nullptr;
  const int32_t* alias = nullptr;

  double probability(int64_t k) const {
    if (kind == SamplerKind::kCustom) return static_cast<double>(probabilities[k]);
    if (kind == SamplerKind::kUniform) return 1.0 / static_cast<double>(classes);
    const auto rank = static_cast<double>(k);
    return std::log((rank + 2) / (rank + 1)) / std::log(static_cast<double>(classes) + 1);
  }

  // Number i of the draw.
  int64_t draw(const Philox& random, uint64_t i) const {
    const double u = random.uniform53(2 * i);
    if (kind == SamplerKind::kLogUniform) {
      const double value = std::exp(u * std::log(static_cast<double>(classes) + 1)) - 1;
      return std::min(static_cast<int64_t>(value), classes - 1);
    }
    const int64_t k = std::min(static_cast<int64_t>(u * static_cast<double>(classes)), classes - 1);
    if (kind == SamplerKind::kUniform) return k;
    if (random.uniform53(2 * i + 1) < static_cast<double>(keep[k])) return k;
    const int64_t other = alias[k];
    return other >= 0 && other < classes ? other : k;
  }
};

}  // namespace anabranch::loss
