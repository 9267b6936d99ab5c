// Shared by the device kernels of cudnn_lstm and its gradient.
#pragma once
#include <algorithm>

#include "ops/sequence/queued_blocks.h"
#include "ops/sequence/queued_lstm.h"
#include "ops/sequence/stacked_lstm.h"

namespace anabranch::sequence {

inline device::LstmRule stacked_rule() {
  device::LstmRule rule{};
  constexpr int32_t kPlaces[] = {2, 0, 1, 3};  // of candidate, input, forget and output
  std::copy_n(kPlaces, kGates, rule.places);
  rule.gate = static_cast<int32_t>(Act::kSigmoid);
  rule.candidate = rule.cell = static_cast<int32_t>(Act::kTanh);
  return rule;
}

// The states of a layer and direction: rows [batch, d] of InitH and similar tensors.
inline int64_t states_of(const StackedLstm& lstm, int64_t layer, int64_t way) {
  return (layer * lstm.ways + way) * lstm.batch;
}

template <class T>
LstmWeights<T> state_weights(const StackedLstm& lstm, Slab<const T> all, int64_t layer, int64_t way) {
  const int64_t d = lstm.hidden;
  return {.state = all.part(lstm.state_weights(layer, way), kGates * d * d), .turned = true, .p = d};
}

template <class T> Slab<const T> input_weights(const StackedLstm& lstm, Slab<const T> all, int64_t layer, int64_t way) {
  return all.part(lstm.weights(layer, way), kGates * lstm.hidden * lstm.input_of(layer));
}

}  // namespace anabranch::sequence
