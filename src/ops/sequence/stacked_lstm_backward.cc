#include <algorithm>
#include <cmath>

#include "ops/kernels/outputs.h"
#include "ops/sequence/stacked_lstm.h"

namespace anabranch::sequence {
namespace {

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : op_(op.op()),
        x_(op.in("Input")),
        h0_(op.in("InitH")),
        c0_(op.in("InitC")),
        weights_(op.in("W")),
        reserve_(op.in("Reserve")),
        dout_(op.in("Out@GRAD")),
        dlast_h_(op.in("last_h@GRAD")),
        dlast_c_(op.in("last_c@GRAD")),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("InitH@GRAD")),
        dc0_(op.out("InitC@GRAD")),
        dweights_(op.out("W@GRAD")) {}

  void operator()(KernelContext& c) {
    const StackedLstm lstm(op_, c[x_].shape());
    const T* reserve = c[reserve_].template data<T>();
    const int64_t rows = lstm.rows(), width = lstm.width();
    T* dgiven = sized<T>(dgiven_, rows, width);
    if (dout_) {
      std::copy(c[dout_].template data<T>(), c[dout_].template data<T>() + rows * width, dgiven);
    } else {
      std::fill(dgiven, dgiven + rows * width, T{0});
    }
    zeroed<T>(c, dweights_);
    for (int64_t layer = lstm.layers - 1; layer >= 0; --layer) {
      const bool dropped = layer > 0 && lstm.dropped > 0;
      const T* from =
          layer == 0 ? c[x_].template data<T>() : reserve + (dropped ? lstm.left(layer) : lstm.given(layer - 1));
      T* dfrom = layer == 0 ? needed<T>(c, dx_) : sized<T>(dinput_, rows, width);
      for (int64_t way = 0; way < lstm.ways; ++way) run(c, lstm, layer, way, from, dgiven, dfrom);
      if (layer == 0) break;
      for (int64_t i = 0; i < rows * width; ++i) {
        dgiven[i] = dropped ? dfrom[i] * reserve[lstm.factors(layer) + i] : dfrom[i];
      }
    }
  }

 private:
  void run(KernelContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, const T* from, const T* dgiven,
           T* dfrom) {
    const int64_t d = lstm.hidden, n = lstm.batch, wide = kGates * d, of_state = (layer * lstm.ways + way) * n * d;
    const T* w = c[weights_].template data<T>();
    T* dgates = sized<T>(dgates_, lstm.rows(), wide);
    T *dh = sized<T>(dstate_, n, d), *dc = sized<T>(dcell_, n, d);
    begin(c, dlast_h_, of_state, n * d, dh);
    begin(c, dlast_c_, of_state, n * d, dc);
    for (int64_t step = lstm.steps - 1; step >= 0; --step) {
      step_back(c, lstm, layer, way, step, dgiven + way * d, dh, dc, dgates);
      by_state_->run(c, {.m = n, .n = d, .k = wide}, dgates + lstm.row(way, step) * wide,
                     w + lstm.state_weights(layer, way), dh);
    }
    if (c.needs(dh0_)) std::copy(dh, dh + n * d, c[dh0_].template mutable_data<T>() + of_state);
    if (c.needs(dc0_)) std::copy(dc, dc + n * d, c[dc0_].template mutable_data<T>() + of_state);
    if (dfrom) {
      const int64_t k = lstm.input_of(layer);
      T* part = way == 0 ? dfrom : sized<T>(part_, lstm.rows(), k);
      by_input_->run(c, {.m = lstm.rows(), .n = k, .k = wide}, dgates, w + lstm.weights(layer, way), part);
      if (way > 0) add_to(part, lstm.rows() * k, dfrom);
    }
    if (c.needs(dweights_)) weight_gradient(c, lstm, layer, way, from, dgates);
  }

  void begin(KernelContext& c, In last, int64_t at, int64_t count, T* to) const {
    if (last) {
      std::copy(c[last].template data<T>() + at, c[last].template data<T>() + at + count, to);
    } else {
      std::fill(to, to + count, T{0});
    }
  }

  // Sets the gradient of the gates of one step; dc becomes that of the previous cells.
  void step_back(KernelContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, int64_t step, const T* dgiven,
                 const T* dh, T* dc, T* dgates) const {
    const int64_t d = lstm.hidden, at = lstm.row(way, step), wide = kGates * d;
    const T* gates = c[reserve_].template data<T>() + lstm.gates(layer, way) + at * wide;
    const T* all_cells = c[reserve_].template data<T>() + lstm.cells(layer, way);
    const T* before = step > 0 ? all_cells + lstm.row(way, step - 1) * d
                               : c[c0_].template data<T>() + (layer * lstm.ways + way) * lstm.batch * d;
    each_row(c, lstm.batch, wide, [&](int64_t k) {
      const T *g = gates + k * wide, *cell = all_cells + (at + k) * d, *up = dgiven + (at + k) * lstm.width();
      T* to = dgates + (at + k) * wide;
      for (int64_t j = 0; j < d; ++j) {
        const T state = std::tanh(cell[j]), slope = up[j] + dh[k * d + j];
        const T dcell = dc[k * d + j] + slope * g[3 * d + j] * (1 - state * state);
        to[j] = dcell * g[2 * d + j];
        to[d + j] = dcell * before[k * d + j];
        to[2 * d + j] = dcell * g[j];
        to[3 * d + j] = slope * state;
        dc[k * d + j] = dcell * g[d + j];
      }
      act_grad(Act::kSigmoid, g, to, 2 * d);
      act_grad(Act::kTanh, g + 2 * d, to + 2 * d, d);
      act_grad(Act::kSigmoid, g + 3 * d, to + 3 * d, d);
    });
  }

  void weight_gradient(KernelContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, const T* from,
                       const T* dgates) {
    const int64_t d = lstm.hidden, n = lstm.batch, wide = kGates * d, rows = lstm.rows(), k = lstm.input_of(layer);
    T* to = c[dweights_].template mutable_data<T>();
    of_input_->run(c, {.m = wide, .n = k, .k = rows, .trans_a = true}, dgates, from, to + lstm.weights(layer, way));
    T* before = sized<T>(before_, rows, d);
    const T* given = c[reserve_].template data<T>() + lstm.given(layer) + way * d;
    const T* first = c[h0_].template data<T>() + (layer * lstm.ways + way) * n * d;
    for (int64_t step = 0; step < lstm.steps; ++step) {
      for (int64_t b = 0; b < n; ++b) {
        const T* row = step == 0 ? first + b * d : given + (lstm.row(way, step - 1) + b) * lstm.width();
        std::copy(row, row + d, before + (lstm.row(way, step) + b) * d);
      }
    }
    of_state_->run(c, {.m = wide, .n = d, .k = rows, .trans_a = true}, dgates, before,
                   to + lstm.state_weights(layer, way));
    T* biases = to + lstm.biases(layer, way);
    add_columns(c, dgates, rows, wide, biases);
    std::copy(biases, biases + wide, biases + wide);
  }

  ir::Op op_;
  In x_, h0_, c0_, weights_, reserve_, dout_, dlast_h_, dlast_c_;
  Out dx_, dh0_, dc0_, dweights_;
  std::shared_ptr<Tensor> dgiven_ = std::make_shared<Tensor>(), dinput_ = std::make_shared<Tensor>(),
                          dgates_ = std::make_shared<Tensor>(), dstate_ = std::make_shared<Tensor>(),
                          dcell_ = std::make_shared<Tensor>(), part_ = std::make_shared<Tensor>(),
                          before_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_input_ = std::make_shared<Gemm<T>>(), by_state_ = std::make_shared<Gemm<T>>(),
                           of_input_ = std::make_shared<Gemm<T>>(), of_state_ = std::make_shared<Gemm<T>>();
};

}  // namespace

template <class T> Kernel stacked_lstm_backward(const KernelArgs& op) { return Backward<T>(op); }
template Kernel stacked_lstm_backward<float>(const KernelArgs&);
template Kernel stacked_lstm_backward<double>(const KernelArgs&);

}  // namespace anabranch::sequence
