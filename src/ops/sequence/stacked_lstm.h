// Several layers of LSTM over a dense batch [steps, batch, width], in one or both directions, with all weights in one
// array. Shared by the kernels of cudnn_lstm and its gradient: extents and layout.
#pragma once
#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {

constexpr int64_t kGates = 4;  // input, forget, candidate, output

struct StackedLstm {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, layers = 1, ways = 1;
  float dropped = 0;  // fraction of dropped inputs in all layers except the first

  StackedLstm(const ir::Op& op, const Shape& x)
      : steps(x[0]),
        batch(x[1]),
        input(x[2]),
        hidden(op.attr<int32_t>("hidden_size")),
        layers(op.attr<int32_t>("num_layers")),
        ways(op.attr<bool>("is_bidirec") ? 2 : 1),
        dropped(op.attr<bool>("is_test") ? 0.0F : op.attr<float>("dropout_prob")) {}

  int64_t rows() const { return steps * batch; }
  int64_t width() const { return hidden * ways; }  // of a layer's output
  int64_t input_of(int64_t layer) const { return layer == 0 ? input : width(); }

  // Weights: for each layer and direction first those of the input, [4 hidden, its width], then those of the state, [4
  // hidden, hidden]; all of them are followed by both biases, [2, 4 hidden], of each layer and direction.
  int64_t weights(int64_t layer, int64_t way) const {
    const int64_t of_first = kGates * hidden * (input + hidden), of_others = kGates * hidden * (width() + hidden);
    return layer == 0 ? way * of_first : ways * of_first + ((layer - 1) * ways + way) * of_others;
  }
  int64_t state_weights(int64_t layer, int64_t way) const {
    return weights(layer, way) + kGates * hidden * input_of(layer);
  }
  int64_t biases(int64_t layer, int64_t way) const {
    return weights(layers, 0) + (layer * ways + way) * 2 * kGates * hidden;
  }
  int64_t weight_count() const { return biases(layers, 0); }

  // State for the backward pass: gates and cells of each layer and direction, in the order of rows; the outputs of each
  // layer; and with dropout, the factors of a layer's inputs and the remaining inputs.
  int64_t gates(int64_t layer, int64_t way) const { return (layer * ways + way) * rows() * (kGates + 1) * hidden; }
  int64_t cells(int64_t layer, int64_t way) const { return gates(layer, way) + rows() * kGates * hidden; }
  int64_t given(int64_t layer) const { return gates(layers, 0) + layer * rows() * width(); }
  int64_t factors(int64_t layer) const { return given(layers) + (layer - 1) * 2 * rows() * width(); }
  int64_t left(int64_t layer) const { return factors(layer) + rows() * width(); }
  int64_t reserve_count() const { return dropped > 0 ? factors(layers) : given(layers); }

  // The row of a step in the order of a direction.
  int64_t row(int64_t way, int64_t step) const { return (way == 0 ? step : steps - 1 - step) * batch; }
};

template <class T> Kernel stacked_lstm_backward(const KernelArgs& op);
// On devices.
template <class T> Kernel queued_stacked_lstm(const KernelArgs& op);
template <class T> Kernel queued_stacked_lstm_backward(const KernelArgs& op);

}  // namespace anabranch::sequence
