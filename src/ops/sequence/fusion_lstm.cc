// LSTM with the op that computes its input: a product, or a lookup in a table of products.
#include "ops/kernels/ids.h"
#include "ops/sequence/fusion.h"
#include "ops/sequence/lstm.h"

namespace anabranch::sequence::fusion_lstm_op {
namespace {

bool looks_up(const std::string& type) { return type == "fused_embedding_fc_lstm"; }
const char* input_of(const std::string& type) { return looks_up(type) ? "Ids" : "X"; }

void infer(InferContext& c) {
  const bool ids = looks_up(c.op().type);
  const char *x = input_of(c.op().type), *w = ids ? "Embeddings" : "WeightX";
  if (ids) {
    check_ids_dtype(c, x);
    check_shape(c, x, Shape{kUnknown, 1});
    check_rank(c, w, 2, 2);
  } else {
    check_product(c, x, w);
  }
  for (const char* slot : {"WeightH", "Bias"}) check_same_dtype(c, slot, w);
  check_rank(c, "WeightH", 2, 2);
  const int64_t d = c.in("WeightH").shape[0], wide = d == kUnknown ? kUnknown : 4 * d;
  check_shape(c, "WeightH", Shape{d, wide});
  check_shape(c, w, Shape{kUnknown, wide});
  check_numel(c, "Bias", d == kUnknown ? kUnknown : (c.attr<bool>("use_peepholes") ? 7 : 4) * d);
  AB_CHECK(c.has_in("H0") == c.has_in("C0"), InvalidArgument, "H0 and C0 must be given together");
  if (c.runtime()) lod_of(c, x);
  for (const char* slot : {"H0", "C0"}) {
    if (!c.has_in(slot)) continue;
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
  using On = OnHost<T>;
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
        cell_(op.out("Cell")),
        lstm_(with_.rule()) {}

  void operator()(KernelContext& c) {
    typename On::Memory memory;
    typename On::Room room(c, memory);
    const int64_t rows = c[x_].rows(), d = c[by_h_].rows(), wide = 4 * d;
    steps_.cut(offsets(c[x_]), with_.reverse);
    const Slab<T> gates = room.rows(rows, wide), hidden = room.rows(rows, d), cells = room.rows(rows, d);
    // The rows of a table include their bias.
    const Slab<const T> bias = slab<T>(c, bias_);
    steps_.gather(c, input(c, room, rows, wide), wide, gates, ids_ ? Slab<const T>{} : bias.part(0, wide));
    lstm_.forward(
        c, d, {.state = slab<T>(c, by_h_), .peepholes = with_.peepholes ? bias.from(wide) : Slab<const T>{}, .p = d},
        {.order = steps_.order(),
         .gates = gates,
         .cells = cells,
         .hiddens = hidden,
         .carried = hidden,
         .first_hidden = first_rows<On>(c, steps_, h0_, d, room),
         .first_cell = first_rows<On>(c, steps_, c0_, d, room)});
    steps_.scatter(c, hidden, d, slab<T>(c[hidden_]));
    steps_.scatter(c, cells, d, slab<T>(c[cell_]));
  }

 private:
  // [rows, 4 d]: x in the order of the sequences.
  Slab<const T> input(KernelContext& c, typename On::Room& room, int64_t rows, int64_t wide) {
    const Slab<T> to = room.rows(rows, wide);
    const Slab<const T> w = slab<T>(c, by_x_);
    if (ids_) {
      const int64_t* ids = as_int64(c[x_], &id_scratch_);
      check_ids("Ids", ids, rows, c[by_x_].rows());
      each_row(c, rows, wide, [&](int64_t r) { std::copy_n(w.at + ids[r] * wide, wide, to.at + r * wide); });
    } else {
      by_input_.run(c, {.m = rows, .n = wide, .k = c[x_].shape()[1]}, slab<T>(c, x_), w, to, false);
    }
    return to;
  }

  LstmOptions with_;
  bool ids_;
  In x_, h0_, c0_, by_x_, by_h_, bias_;
  Out hidden_, cell_;
  typename On::Rows steps_;
  LstmRun<On> lstm_;
  Tensor id_scratch_;
  typename On::Product by_input_;
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
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Fused<T>(op); });
}

void declare() {
  declare_fused("fusion_lstm");
  declare_fused("fused_embedding_fc_lstm");
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::sequence::fusion_lstm_op
