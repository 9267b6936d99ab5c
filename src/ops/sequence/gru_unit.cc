// One step of a gated recurrent unit.
#include "ops/sequence/gru_run.h"

namespace anabranch::sequence::gru_unit_op {
namespace {

// Activations are numbered: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
void attrs(OpDef& def) {
  const auto check = [](int32_t v) {
    AB_CHECK(v >= 0 && v <= 3, InvalidArgument, "activation must be 0 to 3, got {}", v);
  };
  def.attr<int32_t>("activation", 2, "activation of the candidate: 0 identity, 1 sigmoid, 2 tanh, 3 relu", check)
      .attr<int32_t>("gate_activation", 1, "activation of the gates, likewise", check)
      .attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate");
}

int64_t check_unit(const InferContext& c) {
  for (const char* slot : {"Input", "HiddenPrev", "Weight"}) {
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "Input");
  }
  const Shape& h = c.in("HiddenPrev").shape;
  const int64_t d = h[1], wide = d == kUnknown ? kUnknown : 3 * d;
  check_shape(c, "Input", Shape{h[0], wide});
  check_shape(c, "Weight", Shape{d, wide});
  check_bias(c);
  return d;
}

GruOptions options_of(const ir::Op& op) {
  return {static_cast<Act>(op.attr<int32_t>("gate_activation")), static_cast<Act>(op.attr<int32_t>("activation")),
          op.attr<bool>("origin_mode")};
}

// A gru with one step.
template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op)
      : x_(op.in("Input")),
        before_(op.in("HiddenPrev")),
        weight_(op.in("Weight")),
        bias_(op.in("Bias")),
        gate_(op.out("Gate")),
        reset_(op.out("ResetHiddenPrev")),
        hidden_(op.out("Hidden")),
        gru_(options_of(op.op()), false) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    steps_.cut_dense(1, n);
    const Slab<T> gates = slab<T>(c[gate_]);
    steps_.gather(c, slab<T>(c, x_), 3 * d, gates, slab<T>(c, bias_));
    gru_.forward(c, d, GruWeights<T>::apart(slab<T>(c, weight_), d),
                 {.order = steps_.order(),
                  .gates = gates,
                  .left = slab<T>(c[reset_]),
                  .states = slab<T>(c[hidden_]),
                  .first = slab<T>(c, before_)});
  }

 private:
  In x_, before_, weight_, bias_;
  Out gate_, reset_, hidden_;
  typename On::Rows steps_;
  GruRun<On> gru_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : before_(op.in("HiddenPrev")),
        weight_(op.in("Weight")),
        gate_(op.in("Gate")),
        reset_(op.in("ResetHiddenPrev")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dbefore_(op.out("HiddenPrev@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        gru_(options_of(op.op()), false) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    typename On::Room room(c, memory_);
    steps_.cut_dense(1, n);
    const Slab<T> dgates = c.needs(dx_) ? slab<T>(c, dx_) : room.rows(n, 3 * d);
    const Slab<T> dbefore = c.needs(dbefore_) ? slab<T>(c, dbefore_) : room.rows(n, d);
    const Slab<T> dstate = room.rows(n, d);
    const Slab<const T> before = slab<T>(c, before_);
    steps_.gather(c, slab<T>(c, dhidden_), d, dstate);
    On::zero(c, dbefore);
    const auto w = GruWeights<T>::apart(slab<T>(c, weight_), d);
    gru_.backward(c, room, d, w,
                  {.order = steps_.order(),
                   .gates = slab<T>(c, gate_),
                   .before = before,
                   .dstates = dstate,
                   .dgates = dgates,
                   .dfirst = dbefore});
    if (c.needs(dbias_)) steps_.column_sums(c, dgates, 3 * d, 3 * d, slab<T>(c, dbias_));
    if (!c.needs(dweight_)) return;
    gru_.backward_weight(c, n, d, before, slab<T>(c, reset_), dgates, w, slab<T>(c, dweight_));
  }

 private:
  In before_, weight_, gate_, reset_, dhidden_;
  Out dx_, dbefore_, dweight_, dbias_;
  typename On::Rows steps_;
  GruRun<On> gru_;
  typename On::Memory memory_;
};

AB_OP(gru_unit)
    .doc("Hidden = one step of gru for each row, from HiddenPrev and Input.")
    .in("Input", "[N, 3 D] float: update gate, reset gate, candidate")
    .in("HiddenPrev", "[N, D]")
    .in("Weight", "[D, 3 D], like Weight of gru")
    .in_optional("Bias", "[1, 3 D]")
    .out_intermediate("Gate", "[N, 3 D], gates and candidate")
    .out_intermediate("ResetHiddenPrev", "[N, D], reset gate times HiddenPrev")
    .out("Hidden", "[N, D]")
    .with(attrs)
    .infer([](InferContext& c) {
      const int64_t d = check_unit(c);
      const DType dtype = c.in("Input").dtype;
      c.set_out("Gate", c.in("Input").shape, dtype);
      for (const char* slot : {"ResetHiddenPrev", "Hidden"}) c.set_out(slot, Shape{c.in("Input").shape[0], d}, dtype);
    })
    .grad_reads({"Input", "HiddenPrev", "Weight", "Bias"}, {"Gate", "ResetHiddenPrev"})
    .with(run_on_both<Forward>);

AB_GRAD(gru_unit).with(run_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::gru_unit_op
