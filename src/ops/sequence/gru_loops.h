// The gate arithmetic of gated recurrent units for float32, for n units of one row, in the widest vectors of the
// machine. Products with the state are in a tile; null: none. Single-threaded.
#pragma once
#include <cstdint>

#include "ops/sequence/acts.h"

namespace anabranch::sequence::loops {

struct GruRule {
  Act gate, candidate;
  bool origin;  // the update gate weights the old state instead of the candidate
};

// The gates, and the previous state times the reset gate (null: zeros).
struct GruGates {
  const float *update_tile, *reset_tile, *before;
  float *update, *reset, *left;
};
void gru_gates(const GruRule& rule, int64_t n, const GruGates& row);

// The candidate and the new state.
struct GruState {
  const float *tile, *update, *before;
  float *candidate, *state;
};
void gru_state(const GruRule& rule, int64_t n, const GruState& row);

// Backward through the new state. tile is added to dstate; dbefore is added to.
struct GruStateBack {
  const float *tile, *dstate, *update, *candidate, *before;
  float *dupdate, *dcandidate, *dbefore;
};
void gru_state_back(const GruRule& rule, int64_t n, const GruStateBack& row);

// Backward through the reset gate; tile: the gradient of its product with the state.
struct GruResetBack {
  const float *tile, *reset, *before;
  float *dreset, *dbefore;
};
void gru_reset_back(const GruRule& rule, int64_t n, const GruResetBack& row);

}  // namespace anabranch::sequence::loops
