// The inner loops of recurrences for float32: products of the rows of a step with weights that were packed before the
// first step, and the gate arithmetic on their results, in the widest vectors of the machine. Single-threaded.
//
// Weights are in panels of kPanel columns, [k][kPanel] each; missing columns are zeros. A sum runs over k in ascending
// order in one accumulator, so that an element depends neither on the number of rows nor on its position.
#pragma once
#include <cstdint>

#include "ops/sequence/acts.h"

namespace anabranch::sequence::loops {

inline constexpr int64_t kPanel = 32;
inline constexpr int64_t kUnits = 16;              // of a tile of gates: their columns are two panels
inline constexpr int64_t kTileWidth = 4 * kUnits;  // candidate, input, forget, output of kUnits units
inline constexpr int64_t kTileRows = 24;

// out[m, kPanel] = a[m, k] panel; rows of a and out are lda and ld_out elements apart.
void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* panel, float* out, int64_t ld_out);

// Parameters of each unit of an LSTM: activations, weights of the cell in the gates (null: none), clipping.
struct CellRule {
  Act gate, cell, candidate;
  const float *peep_input, *peep_forget, *peep_output;
  float clip;  // 0: none
};
// Addresses of n <= kUnits units of one row: candidate, input, forget, output of the gates, and the rest.
struct CellForward {
  const float* tile;    // [kTileWidth], products of the previous state; null: none
  float* gates[4];      // the rest of the sums; replaced by candidate and gates
  const float* before;  // the cell; null: zeros
  float *cell, *hidden;
};
void cell_forward(const CellRule& rule, int64_t unit, int64_t n, const CellForward& row);

struct CellBackward {
  const float *gates[4], *cell, *before;  // before: null for zeros
  const float* tile;                      // to be added to dhidden; null: none
  const float *dhidden, *dcell;           // dcell: includes the contribution of the next step
  float* dgates[4];
  float* dbefore;  // added to
};
// For n units from `unit` on, any number of them.
void cell_backward(const CellRule& rule, int64_t unit, int64_t n, const CellBackward& row);

}  // namespace anabranch::sequence::loops
