// Weights of the new state in the state of the next step: 1 within a sequence, 0 after its end. The previous state has
// the remaining weight.
#pragma once
#include <cstdint>

namespace anabranch::sequence {

struct StateMask {
  const float* shares = nullptr;  // [rows]; null: keeps the whole new state
  explicit operator bool() const { return shares != nullptr; }

  void keep(int64_t row, const float* fresh, const float* before, int64_t n, float* to) const {
    const float share = shares[row], rest = 1 - share;
    for (int64_t j = 0; j < n; ++j) to[j] = share * fresh[j] + rest * before[j];
  }
  // dfresh = its share of dkept plus its direct gradient; dbefore gets the rest. tile: a part of dkept, or null.
  void back(int64_t row, const float* dkept, const float* tile, const float* direct, int64_t n, float* dfresh,
            float* dbefore) const {
    const float share = shares[row], rest = 1 - share;
    for (int64_t j = 0; j < n; ++j) {
      const float g = tile ? dkept[j] + tile[j] : dkept[j];
      dfresh[j] = direct[j] + share * g;
      dbefore[j] += rest * g;
    }
  }
};

}  // namespace anabranch::sequence
