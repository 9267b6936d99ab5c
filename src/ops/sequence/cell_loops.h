// The inner loops of recurrences for float32: products of the rows of a step with weights that were packed before the
// first step, and the formulas of cells on their results, in the widest vectors of the machine. Single-threaded.
//
// Weights are in panels of kPanel columns, [k][kPanel] each; missing columns are zeros. A sum runs over k in ascending
// order in one accumulator, so that an element depends neither on the number of rows nor on its position.
#pragma once
#include "ops/sequence/cells.h"

namespace anabranch::sequence::loops {

inline constexpr int64_t kPanel = 32;
inline constexpr int64_t kUnits = kTileUnits;      // of a tile of gates: their columns are two panels
inline constexpr int64_t kTileWidth = 4 * kUnits;  // four gates of kUnits units
inline constexpr int64_t kTileRows = 24;

// out[m, kPanel] = a[m, k] panel; rows of a and out are lda and ld_out elements apart.
void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* panel, float* out, int64_t ld_out);

// The formula of a cell's kernel for n units of a row. tile: products of these units, or null; with several gates n is
// at most kUnits.
template <class K>
void run_units(const typename K::Rule& rule, const typename K::template Row<float>& row, const UnitPlace& place,
               int64_t n, const float* tile);

#define AB_CELLS_OF_LOOPS(DO) \
  DO(LstmCell)                \
  DO(LstmCellGrad)            \
  DO(GruGates)                \
  DO(GruState) DO(GruStateGrad) DO(GruResetGrad) DO(ClippedAct) DO(ClippedActGrad) DO(KeepRows) DO(KeepRowsGrad)

}  // namespace anabranch::sequence::loops
