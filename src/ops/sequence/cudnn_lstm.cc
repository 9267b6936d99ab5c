// Several layers of LSTM over a dense batch, with weights in the order of cuDNN, from which Fluid takes its name.
#include <algorithm>
#include <limits>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/philox.h"
#include "ops/kernels/work.h"
#include "ops/sequence/stacked_lstm.h"

namespace anabranch::sequence::cudnn_lstm_op {
namespace {

// The batch is compared at the run: as in Fluid, a program may be built with states of another one.
void check_state(const InferContext& c, const char* slot, int64_t layers, int64_t batch, int64_t hidden) {
  check_tensor(c, slot);
  check_same_dtype(c, slot, "Input");
  check_shape(c, slot, Shape{layers, c.runtime() ? batch : kUnknown, hidden});
}

void infer(InferContext& c) {
  for (const char* slot : {"Input", "W"}) check_tensor(c, slot);
  check_rank(c, "Input", 3, 3);
  check_same_dtype(c, "W", "Input");
  const Shape& x = c.in("Input").shape;
  const StackedLstm lstm(c.op(), x);
  const int64_t states = lstm.layers * lstm.ways;
  check_state(c, "InitH", states, x[1], lstm.hidden);
  check_state(c, "InitC", states, x[1], lstm.hidden);
  if (x[2] != kUnknown) check_numel(c, "W", lstm.weight_count());
  const DType dtype = c.in("Input").dtype;
  c.set_out("Out", Shape{x[0], x[1], lstm.width()}, dtype);
  c.set_out("last_h", Shape{states, x[1], lstm.hidden}, dtype);
  c.set_out("last_c", Shape{states, x[1], lstm.hidden}, dtype);
  const bool known = x[0] != kUnknown && x[1] != kUnknown;
  c.set_out("Reserve", Shape{known ? lstm.reserve_count() : kUnknown}, dtype);
}

template <class T> class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : op_(op.op()),
        key_(op.random()),
        x_(op.in("Input")),
        h0_(op.in("InitH")),
        c0_(op.in("InitC")),
        weights_(op.in("W")),
        out_(op.out("Out")),
        last_h_(op.out("last_h")),
        last_c_(op.out("last_c")),
        reserve_(op.out("Reserve")) {
    key_.repeats = false;  // differs between steps and replicas, even with a given seed
  }

  void operator()(KernelContext& c) {
    const StackedLstm lstm(op_, c[x_].shape());
    T* reserve = needed<T>(c, reserve_);
    if (!reserve) reserve = sized<T>(own_reserve_, lstm.reserve_count(), 1);
    const T* from = c[x_].template data<T>();
    for (int64_t layer = 0; layer < lstm.layers; ++layer) {
      if (layer > 0 && lstm.dropped > 0) from = drop(c, lstm, layer, from, reserve);
      for (int64_t way = 0; way < lstm.ways; ++way) run(c, lstm, layer, way, from, reserve);
      from = reserve + lstm.given(layer);
    }
    std::copy(from, from + lstm.rows() * lstm.width(), c[out_].template mutable_data<T>());
  }

 private:
  const T* drop(KernelContext& c, const StackedLstm& lstm, int64_t layer, const T* from, T* reserve) const {
    T *factors = reserve + lstm.factors(layer), *left = reserve + lstm.left(layer);
    const int64_t n = lstm.rows() * lstm.width();
    const Philox random(with_step(key_, c));
    const T kept = lstm.dropped < 1 ? T{1} / (T{1} - static_cast<T>(lstm.dropped)) : T{0};
    c.parallel_for(n, 8192, [&](int64_t begin, int64_t end) {
      const int64_t drawn = (layer - 1) * n;
      random.each_uniform(drawn + begin, drawn + end, [&](int64_t i, float u) {
        factors[i - drawn] = u >= lstm.dropped ? kept : T{0};
        left[i - drawn] = factors[i - drawn] * from[i - drawn];
      });
    });
    return left;
  }

  void run(KernelContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, const T* from, T* reserve) const {
    const int64_t d = lstm.hidden, wide = kGates * d, n = lstm.batch, of_state = (layer * lstm.ways + way) * n * d;
    T *gates = reserve + lstm.gates(layer, way), *cells = reserve + lstm.cells(layer, way);
    T* given = reserve + lstm.given(layer) + way * d;
    const T* w = c[weights_].template data<T>();
    by_input_->run(c, {.m = lstm.rows(), .n = wide, .k = lstm.input_of(layer), .trans_b = true}, from,
                   w + lstm.weights(layer, way), gates);
    const T *bias = w + lstm.biases(layer, way), *before = c[h0_].template data<T>() + of_state;
    const T* cell = c[c0_].template data<T>() + of_state;
    int64_t stride = d;  // from row to row of the previous state
    T* part = sized<T>(part_, n, wide);
    for (int64_t step = 0; step < lstm.steps; ++step) {
      const int64_t at = lstm.row(way, step);
      by_state_->run(c, {.m = n, .n = wide, .k = d, .trans_b = true, .ld_a = stride}, before,
                     w + lstm.state_weights(layer, way), part);
      each_row(c, n, wide, [&](int64_t k) {
        T* g = gates + (at + k) * wide;
        add_to(part + k * wide, wide, g);
        add_to(bias, wide, g);
        add_to(bias + wide, wide, g);
        cell_row(d, cell + k * d, g, cells + (at + k) * d, given + (at + k) * lstm.width());
      });
      before = given + at * lstm.width();
      stride = lstm.width();
      cell = cells + at * d;
    }
    keep_last(c, last_h_, before, stride, of_state, n, d);
    keep_last(c, last_c_, cell, d, of_state, n, d);
  }

  static void cell_row(int64_t d, const T* before, T* g, T* cell, T* state) {
    activate(Act::kSigmoid, g, 2 * d);
    activate(Act::kTanh, g + 2 * d, d);
    activate(Act::kSigmoid, g + 3 * d, d);
    for (int64_t j = 0; j < d; ++j) cell[j] = g[d + j] * before[j] + g[j] * g[2 * d + j];
    std::copy(cell, cell + d, state);
    activate(Act::kTanh, state, d);
    for (int64_t j = 0; j < d; ++j) state[j] *= g[3 * d + j];
  }

  static void keep_last(KernelContext& c, Out slot, const T* rows, int64_t stride, int64_t at, int64_t n, int64_t d) {
    if (!c.needs(slot)) return;
    T* to = c[slot].template mutable_data<T>() + at;
    for (int64_t k = 0; k < n; ++k) std::copy(rows + k * stride, rows + k * stride + d, to + k * d);
  }

  ir::Op op_;
  RandomKey key_;
  In x_, h0_, c0_, weights_;
  Out out_, last_h_, last_c_, reserve_;
  std::shared_ptr<Tensor> own_reserve_ = std::make_shared<Tensor>(), part_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_input_ = std::make_shared<Gemm<T>>(), by_state_ = std::make_shared<Gemm<T>>();
};

AB_OP(cudnn_lstm)
    .doc(
        "Layers of LSTM: i, f, o = sigmoid and g = tanh of W x + b + R h + r, c' = f c + i g, h' = o tanh(c'), from "
        "the first step to the last; with is_bidirec also from the last to the first, concatenated. A layer reads the "
        "output of the previous one, with dropout.")
    .source("https://arxiv.org/abs/1308.0850")
    .in("Input", "[steps, batch, input_size] float")
    .in("InitH", "[layers * ways, batch, hidden_size], h before the first step")
    .in("InitC", "[layers * ways, batch, hidden_size], c before the first step")
    .in("W", "W and R of each layer and direction, rows i, f, g, o; then b and r of each layer and direction")
    .in_optional("Cache", "ignored")
    .takes("Cache", Holds::kAnything)
    .out("Out", "[steps, batch, ways * hidden_size], h of the last layer")
    .out("last_h", "[layers * ways, batch, hidden_size], h after the last step")
    .out("last_c", "[layers * ways, batch, hidden_size], c after the last step")
    .out_optional("Reserve", "gates, cells and states, for the gradient")
    .attr<int32_t>("max_len", 1, "ignored")
    .attr<float>("dropout_prob", 0.0F, "fraction of inputs dropped in all layers except the first",
                 within("dropout_prob", 0.0F, 1.0F))
    .attr<bool>("is_bidirec", false, "adds the direction from the last step to the first")
    .attr<int32_t>("input_size", 1, "ignored: the width of Input is used")
    .attr<int32_t>("hidden_size", 100, "width of h and c", within("hidden_size", 1, 1 << 20))
    .attr<int32_t>("num_layers", 1, "number of layers, at least 1", within("num_layers", 1, 4096))
    .attr<bool>("is_test", false, "drops nothing")
    .attr<int32_t>("seed", 0, "seed of dropout; 0: uses the seed of the program")
    .dtype_of_input("Input")
    .effects(kRandom | kMaybeUnset)
    .infer(infer)
    .grad_reads({"Input", "InitH", "InitC", "W"}, {"Reserve"})
    .grad_from({"Out", "last_h", "last_c"})
    .grad_to({"Input", "InitH", "InitC", "W"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return Forward<typename decltype(tag)::type>(op);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_stacked_lstm<typename decltype(tag)::type>(op);
    });

AB_GRAD(cudnn_lstm)
    .doc("Gradients of cudnn_lstm with respect to Input, InitH, InitC and W.")
    .in_optional("last_h@GRAD", "as last_h; zeros if not given")
    .in_optional("last_c@GRAD", "as last_c; zeros if not given")
    .in_optional("Out@GRAD", "like Out; zeros if not given")
    .dtype_of_input("Input")
    .infer([](InferContext& c) {
      check_tensor(c, "Input");
      check_rank(c, "Input", 3, 3);
      const Shape& x = c.in("Input").shape;
      const StackedLstm lstm(c.op(), x);
      const int64_t states = lstm.layers * lstm.ways;
      for (const char* slot : {"InitH", "InitC", "last_h@GRAD", "last_c@GRAD"}) {
        if (c.has_in(slot)) check_state(c, slot, states, x[1], lstm.hidden);
      }
      if (c.has_in("Out@GRAD")) {
        check_same_dtype(c, "Out@GRAD", "Input");
        check_shape(c, "Out@GRAD", Shape{x[0], x[1], lstm.width()});
      }
      check_same_dtype(c, "W", "Input");
      if (x[2] != kUnknown) check_numel(c, "W", lstm.weight_count());
      AB_CHECK(c.has_in("Reserve"), InvalidArgument, "Reserve must be given to compute the gradient");
      check_same_dtype(c, "Reserve", "Input");
      if (x.known()) check_numel(c, "Reserve", lstm.reserve_count());
      for (const char* slot : {"Input", "InitH", "InitC", "W"}) grad_as(c, std::string(slot) + "@GRAD", slot);
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) {
      return stacked_lstm_backward<typename decltype(tag)::type>(op);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_stacked_lstm_backward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::sequence::cudnn_lstm_op
