// LSTM with the op that computes its input: a product, or a lookup in a table of products.
#include <algorithm>

#include "ops/kernels/ids.h"
#include "ops/sequence/fusion.h"
#include "ops/sequence/lstm_step.h"

namespace anabranch::sequence::fusion_lstm_op {
namespace {

bool looks_up(const std::string& type) { return type == "fused_embedding_fc_lstm"; }
const char* input_of(const std::string& type) { return looks_up(type) ? "Ids" : "X"; }

void infer(InferContext& c) {
  const bool ids = looks_up(c.op().type);
  const char *x = input_of(c.op().type), *w = ids ? "Embeddings" : "WeightX";
  if (ids) {
    for (const char* slot : {x, w}) check_tensor(c, slot);
    check_ids_dtype(c, x);
    check_shape(c, x, Shape{kUnknown, 1});
    check_rank(c, w, 2, 2);
  } else {
    check_product(c, x, w);
  }
  for (const char* slot : {"WeightH", "Bias"}) {
    check_tensor(c, slot);
    check_same_dtype(c, slot, w);
  }
  check_rank(c, "WeightH", 2, 2);
  const int64_t d = c.in("WeightH").shape[0], wide = d == kUnknown ? kUnknown : 4 * d;
  check_shape(c, "WeightH", Shape{d, wide});
  check_shape(c, w, Shape{kUnknown, wide});
  check_numel(c, "Bias", d == kUnknown ? kUnknown : (c.attr<bool>("use_peepholes") ? 7 : 4) * d);
  AB_CHECK(c.has_in("H0") == c.has_in("C0"), InvalidArgument, "H0 and C0 must be given together");
  if (c.runtime()) lod_of(c, x);
  for (const char* slot : {"H0", "C0"}) {
    if (!c.has_in(slot)) continue;
    check_tensor(c, slot);
    check_same_dtype(c, slot, w);
    check_shape(c, slot, Shape{c.runtime() ? count(lod_of(c, x).back()) : kUnknown, d});
  }
  for (const char* slot : {"Hidden", "Cell"}) {
    c.set_out(slot, Shape{c.in(x).shape[0], d}, c.in(w).dtype);
    c.share_lod(slot, x);
  }
}

template <class T> class Fused {
 public:
  explicit Fused(const KernelArgs& op)
      : with_(op.op()),
        ids_(looks_up(op.op().type)),
        x_(op.in(input_of(op.op().type))),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        by_x_(op.in(ids_ ? "Embeddings" : "WeightX")),
        by_h_(op.in("WeightH")),
        bias_(op.in("Bias")),
        hidden_(op.out("Hidden")),
        cell_(op.out("Cell")) {}

  void operator()(KernelContext& c) {
    const int64_t rows = c[x_].rows(), d = c[by_h_].rows(), wide = 4 * d;
    steps_.cut(offsets(c[x_]), with_.reverse);
    T* gates = sized<T>(gates_, rows, wide);
    steps_.gather(c, input(c, rows, wide), wide, gates);
    T *hidden = sized<T>(states_, rows, d), *cells = sized<T>(cells_, rows, d),
      *part = sized<T>(part_, steps_.widest(), wide);
    const T *state = steps_.template first<T>(c, h0_, d, first_state_),
            *cell = steps_.template first<T>(c, c0_, d, first_cell_);
    const Peepholes<T> peep(c[bias_].template data<T>(), d, with_.peepholes);
    for (int64_t t = 0; t < steps_.count(); ++t) {
      const int64_t n = steps_.rows(t), at = steps_.begin(t);
      if (state) by_state_->run(c, {.m = n, .n = wide, .k = d}, state, c[by_h_].template data<T>(), part);
      each_row(c, n, wide, [&](int64_t k) {
        T* g = gates + (at + k) * wide;
        if (state) add_to(part + k * wide, wide, g);
        lstm_row(with_, peep, d, cell ? cell + k * d : nullptr, g, cells + (at + k) * d, hidden + (at + k) * d);
      });
      state = hidden + at * d;
      cell = cells + at * d;
    }
    steps_.scatter(c, hidden, d, c[hidden_].template mutable_data<T>());
    steps_.scatter(c, cells, d, c[cell_].template mutable_data<T>());
  }

 private:
  // [rows, 4 d]: x in the order of the sequences. The rows of a table include their bias.
  const T* input(KernelContext& c, int64_t rows, int64_t wide) {
    T* to = sized<T>(products_, rows, wide);
    const T* w = c[by_x_].template data<T>();
    if (ids_) {
      const int64_t* ids = as_int64(c[x_], &id_scratch_);
      check_ids("Ids", ids, rows, c[by_x_].rows());
      each_row(c, rows, wide, [&](int64_t r) { std::copy(w + ids[r] * wide, w + (ids[r] + 1) * wide, to + r * wide); });
      return to;
    }
    by_input_->run(c, {.m = rows, .n = wide, .k = c[x_].shape()[1]}, c[x_].template data<T>(), w, to);
    const T* bias = c[bias_].template data<T>();
    each_row(c, rows, wide, [&](int64_t r) { add_to(bias, wide, to + r * wide); });
    return to;
  }

  LstmOptions with_;
  bool ids_;
  In x_, h0_, c0_, by_x_, by_h_, bias_;
  Out hidden_, cell_;
  Steps steps_;
  Tensor id_scratch_;
  std::shared_ptr<Tensor> products_ = std::make_shared<Tensor>(), gates_ = std::make_shared<Tensor>(),
                          states_ = std::make_shared<Tensor>(), cells_ = std::make_shared<Tensor>(),
                          part_ = std::make_shared<Tensor>(), first_state_ = std::make_shared<Tensor>(),
                          first_cell_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_input_ = std::make_shared<Gemm<T>>(), by_state_ = std::make_shared<Gemm<T>>();
};

void declare_fused(const char* type) {
  const bool ids = looks_up(type);
  OpDef& def = declare_op(type, __FILE__).source("https://arxiv.org/abs/1308.0850");
  if (ids) {
    def.doc("Like lstm, with the rows Ids of Embeddings as input, which include the bias of the gates.")
        .in("Ids", "[rows, 1] int32 or int64 with LoD")
        .in("Embeddings", "[ids, 4 D] float: rows of candidate, input, forget, output");
  } else {
    def.doc("Like lstm, with the input X WeightX.")
        .in("X", "[rows, M] float with LoD")
        .in("WeightX", "[M, 4 D]: candidate, input, forget, output");
  }
  def.in("WeightH", "[D, 4 D], like Weight of lstm")
      .in("Bias", "[1, 4 D], or [1, 7 D] with peepholes, like Bias of lstm")
      .in_optional("H0", "[sequences, D], h before each sequence; zeros if not given")
      .in_optional("C0", "[sequences, D], c before each sequence; together with H0")
      .out("Hidden", "[rows, D], h, with the LoD of the input")
      .out("Cell", "[rows, D], c, with the LoD of the input");
  names_only(def, {"XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"});
  if (!ids) names_only(def, {"CheckedCell"});
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  act_attr(def, "cell_activation", "tanh", "activation of the cell for the hidden state");
  act_attr(def, "candidate_activation", "tanh", "activation of the candidate");
  def.attr<bool>("use_peepholes", true, "adds peepholes: the gates read the cell state")
      .attr<bool>("is_reverse", false, "processes each sequence from its last row to its first")
      .ignores("use_seq", true)
      .dtype_of_input("WeightH")
      .infer(infer)
      .no_grad(kForInference)
      .cpu<float, double>(
          [](auto tag, const KernelArgs& op) -> Kernel { return Fused<typename decltype(tag)::type>(op); });
}

void declare() {
  declare_fused("fusion_lstm");
  declare_fused("fused_embedding_fc_lstm");
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::sequence::fusion_lstm_op
