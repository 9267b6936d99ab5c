// One step of an LSTM for one row.
#pragma once
#include <algorithm>

#include "ops/sequence/lstm.h"

namespace anabranch::sequence {

template <class T> void clip(T limit, T* x, int64_t n) {
  if (limit <= 0) return;
  for (int64_t j = 0; j < n; ++j) x[j] = std::min(std::max(x[j], -limit), limit);
}

// g: x and the product of the previous state with the weights; replaced by candidate and gates. before: the previous
// cell; null: zeros. hidden: the activated cell, before its projection.
template <class T>
void lstm_row(const LstmOptions& with, const Peepholes<T>& peep, int64_t d, const T* before, T* g, T* cell, T* hidden) {
  T *candidate = g, *in = g + d, *forget = g + 2 * d, *out = g + 3 * d;
  if (peep.input && before) {
    for (int64_t j = 0; j < d; ++j) {
      in[j] += peep.input[j] * before[j];
      forget[j] += peep.forget[j] * before[j];
    }
  }
  activate(with.candidate, candidate, d);
  activate(with.gate, in, 2 * d);
  for (int64_t j = 0; j < d; ++j) cell[j] = in[j] * candidate[j] + (before ? forget[j] * before[j] : T{0});
  clip(static_cast<T>(with.cell_clip), cell, d);
  if (peep.output) {
    for (int64_t j = 0; j < d; ++j) out[j] += peep.output[j] * cell[j];
  }
  activate(with.gate, out, d);
  std::copy(cell, cell + d, hidden);
  activate(with.cell, hidden, d);
  for (int64_t j = 0; j < d; ++j) hidden[j] *= out[j];
}

}  // namespace anabranch::sequence
