// Gated recurrent units over sequences: all sequences of a batch at once, step by step.
#include "ops/kernels/work.h"
#include "ops/sequence/gru_run.h"

namespace anabranch::sequence::gru_op {
namespace {

int64_t check_gru(const InferContext& c) {
  for (const char* slot : {"Input", "Weight"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "Input");
  }
  const int64_t d = c.in("Weight").shape[0], wide = d == kUnknown ? kUnknown : 3 * d;
  check_shape(c, "Weight", Shape{d, wide});
  check_shape(c, "Input", Shape{kUnknown, wide});
  check_bias(c);
  return d;
}

template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op)
      : x_(op.in("Input")),
        h0_(op.in("H0")),
        weight_(op.in("Weight")),
        bias_(op.in("Bias")),
        gate_(op.out("BatchGate")),
        reset_(op.out("BatchResetHiddenPrev")),
        states_(op.out("BatchHidden")),
        hidden_(op.out("Hidden")),
        reverse_(op.attr<bool>("is_reverse")),
        gru_(gru_options(op.op())) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    const int64_t d = c[weight_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    const Slab<T> gates = slab<T>(c[gate_]), states = slab<T>(c[states_]);
    steps_.gather(c, slab<T>(c, x_), 3 * d, gates, slab<T>(c, bias_));
    gru_.forward(c, d, GruWeights<T>::apart(slab<T>(c, weight_), d),
                 {.order = steps_.order(),
                  .gates = gates,
                  .left = slab<T>(c[reset_]),
                  .states = states,
                  .first = first_rows<On>(c, steps_, h0_, d, room)});
    steps_.scatter(c, states, d, slab<T>(c[hidden_]));
  }

 private:
  In x_, h0_, weight_, bias_;
  Out gate_, reset_, states_, hidden_;
  bool reverse_;
  typename On::Rows steps_;
  GruRun<On> gru_;
  typename On::Memory memory_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : x_(op.in("Input")),
        h0_(op.in("H0")),
        weight_(op.in("Weight")),
        gate_(op.in("BatchGate")),
        reset_(op.in("BatchResetHiddenPrev")),
        states_(op.in("BatchHidden")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        reverse_(op.attr<bool>("is_reverse")),
        gru_(gru_options(op.op())) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    const int64_t d = c[weight_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    const int64_t rows = steps_.rows();
    const Slab<const T> first = first_rows<On>(c, steps_, h0_, d, room);
    const Slab<T> before = room.rows(rows, d), dstates = room.rows(rows, d), dgates = room.rows(rows, 3 * d);
    steps_.previous(c, slab<T>(c, states_), first, d, before);
    steps_.gather(c, slab<T>(c, dhidden_), d, dstates);
    const Slab<T> dfirst = first ? room.zeros(steps_.order().widest(), d) : Slab<T>{};
    const auto w = GruWeights<T>::apart(slab<T>(c, weight_), d);
    gru_.backward(c, room, d, w,
                  {.order = steps_.order(),
                   .gates = slab<T>(c, gate_),
                   .before = before,
                   .dstates = dstates,
                   .dgates = dgates,
                   .dfirst = dfirst,
                   .has_first = static_cast<bool>(first)});
    if (c.needs(dx_)) steps_.scatter(c, dgates, 3 * d, slab<T>(c, dx_));
    if (c.needs(dh0_)) steps_.scatter_first(c, dfirst, d, slab<T>(c, dh0_));
    if (c.needs(dbias_)) steps_.column_sums(c, dgates, 3 * d, 3 * d, slab<T>(c, dbias_));
    if (!c.needs(dweight_)) return;
    gru_.backward_weight(c, rows, d, before, slab<T>(c, reset_), dgates, w, slab<T>(c, dweight_));
  }

 private:
  In x_, h0_, weight_, gate_, reset_, states_, dhidden_;
  Out dx_, dh0_, dweight_, dbias_;
  bool reverse_;
  typename On::Rows steps_;
  GruRun<On> gru_;
  typename On::Memory memory_;
};

void attrs(OpDef& def) {
  gru_attrs(def).attr<bool>("is_reverse", false, "processes each sequence from its last row to its first");
}

AB_OP(gru)
    .doc(
        "h[t] = (1 - u) h[t-1] + u c with the gates u, r = f(x[t] + h[t-1] W) and the candidate c = g(x[t] + (r "
        "h[t-1]) V), along each sequence.")
    .source("https://arxiv.org/abs/1406.1078")
    .in("Input", "[rows, 3 D] float with LoD: x of the update gate, the reset gate and the candidate")
    .in_optional("H0", "[sequences, D], the state before each sequence; zeros if not given")
    .in("Weight", "[D, 3 D]: the elements of W [D, 2 D], then those of V [D, D]")
    .in_optional("Bias", "[1, 3 D], added to each x")
    .out_intermediate("BatchGate", "[rows, 3 D], gates and candidate in the order of steps")
    .out_intermediate("BatchResetHiddenPrev", "[rows, D], r h[t-1] in the order of steps")
    .out_intermediate("BatchHidden", "[rows, D], h in the order of steps")
    .out("Hidden", "[rows, D], h, with the LoD of Input")
    .with(attrs)
    .flops(recurrent_flops)
    .infer([](InferContext& c) {
      const int64_t d = check_gru(c), rows = c.in("Input").shape[0];
      if (c.runtime()) lod_of(c, "Input");
      check_first(c, "H0", "Input", d);
      const DType dtype = c.in("Input").dtype;
      c.set_out("BatchGate", c.in("Input").shape, dtype);
      for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden"}) {
        c.set_out(slot, Shape{rows, d}, dtype);
      }
      c.share_lod("Hidden", "Input");
    })
    .grad_reads({"Input", "H0", "Weight", "Bias"}, {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"})
    .with(run_on_both<Forward>);

AB_GRAD(gru).with(run_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::gru_op
