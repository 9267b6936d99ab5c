// Several layers of LSTM over a dense batch [steps, batch, width], in one or both directions, with all weights in one
// array. Shared by the kernels of cudnn_lstm and its gradient: extents and layout.
#pragma once
#include "ops/sequence/lstm_run.h"

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

// Input, forget, candidate, output: those are the places of candidate, input, forget and output.
inline device::LstmRule stacked_rule() { return lstm_rule(Act::kSigmoid, Act::kTanh, Act::kTanh, {2, 0, 1, 3}); }

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

// Dropout between layers: the same random numbers on the host and on devices.
template <class On> class StackedDropout;
template <class T> class StackedDropout<OnHost<T>> {
 public:
  explicit StackedDropout(const KernelArgs& op) : key_(op.random()) {
    key_.repeats = false;  // differs between steps and replicas, even with a given seed
  }
  // Puts the factors and the remaining inputs of a layer into the reserve. out: the tensor that random numbers are for.
  void run(const KernelContext& c, const StackedLstm& lstm, int64_t layer, Slab<const T> from, Slab<T> reserve,
           Tensor& out) const;
  static void scale(const KernelContext& c, Slab<const T> factors, Slab<T> rows) {
    c.parallel_each(rows.count, 8192, [&](int64_t i) { rows.at[i] *= factors.at[i]; });
  }

 private:
  RandomKey key_;
};
template <class T> class StackedDropout<OnDevice<T>> {
 public:
  explicit StackedDropout(const KernelArgs& op) : key_(op.random()) { key_.repeats = false; }
  void run(const DeviceContext& c, const StackedLstm& lstm, int64_t layer, Slab<const T> from, Slab<T> reserve,
           Tensor& out) const;
  void scale(const DeviceContext& c, Slab<const T> factors, Slab<T> rows) const;

 private:
  RandomKey key_;
  ab_kernel drop_ = device::kernel_of<T>("draw/factors"), multiply_ = device::kernel_of<T>("binary/mul");
};

// Declare the kernels.
void stacked_lstm_forward(OpDef& def);
void stacked_lstm_backward(OpDef& def);

}  // namespace anabranch::sequence
