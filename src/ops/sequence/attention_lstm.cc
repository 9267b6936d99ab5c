// An LSTM that reads, in each step, an attention-weighted mean of all rows of its sequence.
#include <algorithm>
#include <cmath>

#include "ops/sequence/fusion.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence::attention_lstm_op {
namespace {

struct Dims {
  int64_t x = kUnknown, d = kUnknown;
};

Dims check_weights(const InferContext& c) {
  check_rank(c, "X", 2, 2);
  for (const char* slot : {"AttentionWeight", "LSTMWeight", "LSTMBias"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "X");
  }
  const Shape& w = c.in("LSTMWeight").shape;
  AB_CHECK(w[1] < 0 || w[1] % 4 == 0, ShapeMismatch, "the width of LSTMWeight must be a multiple of 4, got {}",
           w.str());
  const Dims dims{c.in("X").shape[1], w[1] < 0 ? kUnknown : w[1] / 4};
  const int64_t both = dims.x < 0 || dims.d < 0 ? kUnknown : dims.x + dims.d;
  check_shape(c, "LSTMWeight", Shape{both, kUnknown});
  check_shape(c, "LSTMBias", Shape{1, w[1]});
  check_shape(c, "AttentionWeight", Shape{both, 1});
  for (const char* slot : {"AttentionBias", "AttentionScalar", "AttentionScalarBias"}) {
    if (!c.has_in(slot)) continue;
    check_same_dtype(c, slot, "X");
    check_numel(c, slot, 1);
  }
  AB_CHECK(c.has_in("AttentionScalar") || !c.has_in("AttentionScalarBias"), InvalidArgument,
           "AttentionScalarBias must be given together with AttentionScalar");
  return dims;
}

void infer(InferContext& c) {
  const Dims dims = check_weights(c);
  if (c.runtime()) single_level(c, "X");
  check_first(c, "C0", "X", dims.d);
  check_first(c, "H0", "X", dims.d);
  for (const char* slot : {"Hidden", "Cell"}) {
    c.set_out(slot, Shape{c.in("X").shape[0], dims.d}, c.in("X").dtype);
    c.share_lod(slot, "X");
  }
}

template <class T> T dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T> void softmax(T* x, int64_t n) {
  const T most = *std::max_element(x, x + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

// to += x w, w [k, n].
template <class T> void add_product(const T* x, const T* w, int64_t k, int64_t n, T* to) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) to[j] += x[i] * w[i * n + j];
  }
}

// Weights and memory of one run; each sequence has a part of each scratch row.
template <class T> struct Reader {
  int64_t width, d;
  Act gate, cell_act, candidate;
  const T *x, *attention, *bias, *scalar, *scalar_bias, *w, *w_bias;

  void run(int64_t begin, int64_t n, const T* h, const T* c, T* shares, T* mixed, T* hidden, T* cell) const {
    T *scores = shares, *weights = shares + n, *gates = mixed + width;
    for (int64_t r = 0; r < n; ++r) {
      scores[r] = dot(x + (begin + r) * width, attention, width) + (bias ? *bias : T{0});
    }
    for (int64_t t = 0; t < n; ++t) {
      look(begin, n, c, scores, weights, mixed);
      std::copy(w_bias, w_bias + 4 * d, gates);
      if (h) add_product(h, w, d, 4 * d, gates);
      add_product(mixed, w + d * 4 * d, width, 4 * d, gates);
      step(c, gates, hidden + (begin + t) * d, cell + (begin + t) * d);
      h = hidden + (begin + t) * d;
      c = cell + (begin + t) * d;
    }
  }

  // mixed: the mean of the rows, weighted by the attention of the cell.
  void look(int64_t begin, int64_t n, const T* c, const T* scores, T* weights, T* mixed) const {
    const T asked = dot(c, attention + width, d);
    for (int64_t r = 0; r < n; ++r) {
      weights[r] = std::max(scores[r] + asked, T{0});
      if (scalar) weights[r] *= *scalar;
      if (scalar) weights[r] = std::max(weights[r] + (scalar_bias ? *scalar_bias : T{0}), T{0});
    }
    softmax(weights, n);
    std::fill(mixed, mixed + width, T{0});
    add_product(weights, x + begin * width, n, width, mixed);
  }

  // gates: forget, input, output, candidate.
  void step(const T* before, T* gates, T* hidden, T* cell) const {
    activate(gate, gates, 3 * d);
    activate(candidate, gates + 3 * d, d);
    for (int64_t j = 0; j < d; ++j) cell[j] = gates[j] * before[j] + gates[d + j] * gates[3 * d + j];
    std::copy(cell, cell + d, hidden);
    activate(cell_act, hidden, d);
    for (int64_t j = 0; j < d; ++j) hidden[j] *= gates[2 * d + j];
  }
};

constexpr auto kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const auto act = [&](const char* name) { return act_named(op.attr<std::string>(name)); };
  const In x = op.in("X"), c0 = op.in("C0"), h0 = op.in("H0"), attention = op.in("AttentionWeight");
  const In bias = op.in("AttentionBias"), scalar = op.in("AttentionScalar"), add = op.in("AttentionScalarBias");
  const In w = op.in("LSTMWeight"), w_bias = op.in("LSTMBias");
  const Act gate = act("gate_activation"), cell_act = act("cell_activation"), candidate = act("candidate_activation");
  return [=, hidden = op.out("Hidden"), cell = op.out("Cell"), shares = std::make_shared<Tensor>(),
          mixed = std::make_shared<Tensor>()](KernelContext& c) {
    const auto data = [&](In slot) { return slot ? c[slot].data<T>() : nullptr; };
    const int64_t width = c[x].shape()[1], d = c[w].shape()[1] / 4;
    const Reader<T> reader{width,           d,          gate,         cell_act,  candidate, data(x),
                           data(attention), data(bias), data(scalar), data(add), data(w),   data(w_bias)};
    const Spans spans(offsets(c[x]));
    T *rows = sized<T>(shares, 2, c[x].rows()), *parts = sized<T>(mixed, spans.count(), width + 4 * d);
    T *h = c[hidden].mutable_data<T>(), *cells = c[cell].mutable_data<T>();
    c.parallel_each(spans.count(), 1, [&](int64_t s) {
      if (spans.rows(s) == 0) return;
      reader.run(spans.begin(s), spans.rows(s), h0 ? data(h0) + s * d : nullptr, data(c0) + s * d,
                 rows + 2 * spans.begin(s), parts + s * (width + 4 * d), h, cells);
    });
  };
};

void declare() {
  OpDef& def =
      declare_op("attention_lstm", __FILE__)
          .doc(
              "Like lstm with gates f, i, o and candidate computed from [h, m] LSTMWeight + LSTMBias; m is the sum of "
              "p_r x_r over all rows of the sequence, p = softmax(relu(s relu([x_r, c] AttentionWeight + "
              "AttentionBias) + b)), where s and b are the two scalars; without them the outer relu is omitted.")
          .source(
              "Bahdanau, Cho and Bengio, Neural machine translation by jointly learning to align and translate, ICLR "
              "2015")
          .in("X", "[rows, M] float with LoD")
          .in("C0", "[sequences, D], c before each sequence")
          .in_optional("H0", "[sequences, D], h before each sequence; zeros if not given")
          .in("AttentionWeight", "[M + D, 1]")
          .in_optional("AttentionBias", "[1, 1]")
          .in_optional("AttentionScalar", "[1, 1]")
          .in_optional("AttentionScalarBias", "[1, 1], with AttentionScalar")
          .in("LSTMWeight", "[D + M, 4 D]: forget, input, output, candidate")
          .in("LSTMBias", "[1, 4 D]")
          .out("Hidden", "[rows, D], h, with the LoD of X")
          .out("Cell", "[rows, D], c, with the LoD of X");
  names_only(def, {"AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"});
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  act_attr(def, "cell_activation", "tanh", "activation of the cell for the hidden state");
  act_attr(def, "candidate_activation", "tanh", "activation of the candidate");
  def.dtype_of_input("X").infer(infer).no_grad(kForInference).cpu<float, double>(kernel);
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::sequence::attention_lstm_op
