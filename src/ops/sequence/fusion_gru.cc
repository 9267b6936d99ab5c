// Gated recurrent units with the product that computes their input.
#include "ops/sequence/fusion.h"
#include "ops/sequence/gru_run.h"

namespace anabranch::sequence::fusion_gru_op {
namespace {

void infer(InferContext& c) {
  const int64_t wide = check_product(c, "X", "WeightX");
  check_rank(c, "WeightH", 2, 2);
  check_same_dtype(c, "WeightH", "X");
  const int64_t d = c.in("WeightH").shape[0];
  check_shape(c, "WeightH", Shape{d, d == kUnknown ? kUnknown : 3 * d});
  AB_CHECK(wide == kUnknown || d == kUnknown || wide == 3 * d, ShapeMismatch, "WeightX must have {} columns, got {}",
           3 * d, c.in("WeightX").shape.str());
  if (c.has_in("Bias")) {
    check_same_dtype(c, "Bias", "X");
    check_numel(c, "Bias", wide);
  }
  if (c.runtime()) lod_of(c, "X");
  check_first(c, "H0", "X", d);
  c.set_out("Hidden", Shape{c.in("X").shape[0], d}, c.in("X").dtype);
  c.share_lod("Hidden", "X");
}

template <class On> class Fused {
 public:
  using T = typename On::Number;
  explicit Fused(const KernelArgs& op)
      : x_(op.in("X")),
        h0_(op.in("H0")),
        by_x_(op.in("WeightX")),
        by_h_(op.in("WeightH")),
        bias_(op.in("Bias")),
        hidden_(op.out("Hidden")),
        reverse_(op.attr<bool>("is_reverse")),
        gru_(gru_options(op.op())) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    const int64_t rows = c[x_].rows(), d = c[by_h_].rows(), wide = 3 * d;
    steps_.cut(offsets(c[x_]), reverse_);
    const Slab<T> products = room.rows(rows, wide), gates = room.rows(rows, wide), states = room.rows(rows, d);
    product_.run(c, {.m = rows, .n = wide, .k = c[x_].shape()[1]}, slab<T>(c, x_), slab<T>(c, by_x_), products, false);
    steps_.gather(c, products, wide, gates, slab<T>(c, bias_));
    gru_.forward(c, d, GruWeights<T>::apart(slab<T>(c, by_h_), d),
                 {.order = steps_.order(),
                  .gates = gates,
                  .left = room.rows(rows, d),
                  .states = states,
                  .first = first_rows<On>(c, steps_, h0_, d, room)});
    steps_.scatter(c, states, d, slab<T>(c[hidden_]));
  }

 private:
  In x_, h0_, by_x_, by_h_, bias_;
  Out hidden_;
  bool reverse_;
  GruRun<On> gru_;
  typename On::Rows steps_;
  typename On::Product product_;
  typename On::Memory memory_;
};

void declare() {
  OpDef& def = declare_op("fusion_gru", __FILE__)
                   .doc("Like gru, with the input X WeightX + Bias.")
                   .source("https://arxiv.org/abs/1406.1078")
                   .in("X", "[rows, M] float with LoD")
                   .in_optional("H0", "[sequences, D], the state before each sequence; zeros if not given")
                   .in("WeightX", "[M, 3 D]: update gate, reset gate, candidate")
                   .in("WeightH", "[D, 3 D], like Weight of gru")
                   .in_optional("Bias", "[1, 3 D]");
  names_only(def, {"ReorderedH0", "XX", "BatchedInput", "BatchedOut"});
  def.out("Hidden", "[rows, D], with the LoD of X");
  gru_attrs(def)
      .attr<bool>("is_reverse", false, "processes each sequence from its last row to its first")
      .ignores("use_seq", true)
      .dtype_of_input("X")
      .infer(infer)
      .no_grad(kForInference)
      .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Fused<OnHost<T>>(op); });
}

AB_OPS(declare);

}  // namespace
}  // namespace anabranch::sequence::fusion_gru_op
