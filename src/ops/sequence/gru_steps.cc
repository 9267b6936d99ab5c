// Gated recurrent units over a dense batch [steps, batch, width], or over sequences, in one op. Passes make it from a
// block that runs for each step: one product computes x for all steps, and so do the gradients of x and of the weights.
#include "ops/sequence/cell_steps.h"
#include "ops/sequence/gru_run.h"

namespace anabranch::sequence::gru_steps_op {
namespace {

constexpr int kGates = 3;

template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        hidden_(op.out("Hidden")),
        kept_(op.out("KeptHidden")),
        gates_(op.out("Gates")),
        left_(op.out("Left")),
        sums_(op, kGates),
        gru_(gru_options(op.op())) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    if (s_.rows() == 0 || d == 0) return;
    typename On::Room room(c, memory_);
    const Slab<T> gates = slab<T>(c[gates_]), states = s_.begin(slab<T>(c[hidden_]), d, room);
    sums_.run(c, s_, room, gates);
    gru_.forward(c, d, GruWeights<T>::side_by_side(sums_.state_weight(), d),
                 {.order = s_.order(),
                  .gates = gates,
                  .left = slab<T>(c[left_]),
                  .states = states,
                  .first = slab<T>(c, h0_),
                  .mask = slab<T>(c, mask_),
                  .kept = slab<T>(c, kept_)});
    s_.finish(c, states, d, slab<T>(c[hidden_]));
  }

 private:
  In x_, mask_, h0_;
  Out hidden_, kept_, gates_, left_;
  StepSums<On> sums_;
  StepRows<On> s_;
  GruRun<On> gru_;
  typename On::Memory memory_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        hidden_(op.in("Hidden")),
        kept_(op.in("KeptHidden")),
        gates_(op.in("Gates")),
        left_(op.in("Left")),
        dhidden_(op.in("Hidden@GRAD")),
        dkept_(op.in("KeptHidden@GRAD")),
        dh0_(op.out("H0@GRAD")),
        sums_(op, kGates),
        gru_(gru_options(op.op())) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    typename On::Room room(c, memory_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<T> dgates = room.rows(rows, kGates * d), before = room.rows(rows, d);
    s_.steps().gather_previous(c, slab<T>(c, mask_ ? kept_ : hidden_), slab<T>(c, h0_), d, before);
    const auto w = GruWeights<T>::side_by_side(sums_.state_weight(c, s_, room), d);
    gru_.backward(c, room, d, w,
                  {.order = s_.order(),
                   .gates = slab<T>(c, gates_),
                   .before = before,
                   .dstates = s_.own(c, dhidden_, room),
                   .dgates = dgates,
                   .dfirst = s_.first_gradient(c, h0_, dh0_, room),
                   .mask = slab<T>(c, mask_),
                   .dkept = mask_ ? s_.own(c, dkept_, room) : Slab<T>{}});
    sums_.give(c, s_, room, dgates,
               [&](Slab<T> to) { gru_.backward_weight(c, rows, d, before, slab<T>(c, left_), dgates, w, to); });
  }

 private:
  In x_, mask_, h0_, hidden_, kept_, gates_, left_, dhidden_, dkept_;
  Out dh0_;
  StepSumsBack<On> sums_;
  StepRows<On> s_;
  GruRun<On> gru_;
  typename On::Memory memory_;
};

void slots(OpDef& def) {
  def.in("H0", "[batch, D], h before step 0; for sequences by descending length");
  gru_attrs(def);
}

AB_OP(gru_steps)
    .doc(
        "h[t] = (1 - u) h[t-1] + u c with the gates u, r = f(...) of x[t] and h[t-1] by their weights and the "
        "candidate c = g(...) of x[t] and r h[t-1] by theirs, with biases. With Mask, the next step reads KeptHidden = "
        "Mask h[t] + (1 - Mask) times the previous one instead of h[t].")
    .source("https://arxiv.org/abs/1406.1078")
    .with(step_slots)
    .with(slots)
    .out("Hidden", "[steps, batch, D], h; [rows, D] for sequences")
    .out_optional("KeptHidden", "[steps, batch, D], with Mask")
    .out("Gates",
         "[steps, batch, 3 D] or [rows, 3 D] in the order of steps, update gate, reset gate and candidate, for the "
         "gradient")
    .out("Left", "[steps, batch, D] or [rows, D] in the order of steps, r h[t-1], for the gradient")
    .infer([](InferContext& c) {
      check_steps(c, kGates, {"H0"});
      for (const char* slot : {"Hidden", "KeptHidden"}) {
        if (c.has_out(slot)) set_states(c, slot);
      }
      c.set_out("Left", steps_shape(c), c.in("X").dtype);
      AB_CHECK(c.has_in("Mask") == c.has_out("KeptHidden"), InvalidArgument,
               "KeptHidden must be given if and only if Mask is given");
      c.set_out("Gates", steps_shape(c, kGates), c.in("X").dtype);
    })
    .no_grad("inserted after the gradients")
    .with(run_float_on_both<Forward>);

AB_GRAD(gru_steps)
    .doc("Gradients of gru_steps; those of X and of the weights are one product over all steps each.")
    .with(step_gradient_slots)
    .with(slots)
    .in("Hidden", "as in gru_steps")
    .in_optional("KeptHidden", "as in gru_steps")
    .in("Gates", "as in gru_steps")
    .in("Left", "as in gru_steps")
    .in_optional_list("Hidden@GRAD", "like Hidden; they are summed; zeros if there are none")
    .in_optional_list("KeptHidden@GRAD", "like KeptHidden, likewise")
    .out_optional("H0@GRAD", "like H0")
    .infer([](InferContext& c) {
      check_steps(c, kGates, {"H0"});
      AB_CHECK(c.has_in("KeptHidden") || !c.has_in("Mask"), InvalidArgument,
               "KeptHidden must be given if Mask is given");
      check_state_gradients(c, {"Hidden", "KeptHidden", "Left", "Hidden@GRAD", "KeptHidden@GRAD"});
      check_shape(c, "Gates", steps_shape(c, kGates));
      infer_step_gradients(c, {"H0"});
    })
    .with(run_float_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::gru_steps_op
