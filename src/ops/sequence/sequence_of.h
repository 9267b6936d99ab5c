// Maps rows to sequences in device kernels.
#pragma once
#include "ops/device/half.h"

namespace anabranch::device {

// The sequence that a row belongs to: the last one that starts at the row or before it.
AB_HD inline int64_t sequence_of(const int64_t* offsets, int64_t sequences, int64_t row) {
  int64_t from = 0, to = sequences;
  while (to - from > 1) {
    const int64_t middle = (from + to) / 2;
    if (offsets[middle] <= row)
      from = middle;
    else
      to = middle;
  }
  return from;
}

}  // namespace anabranch::device
