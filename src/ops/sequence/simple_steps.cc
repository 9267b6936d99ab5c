// A simple recurrence - one product and its activation - over a dense batch [steps, batch, width], or over sequences,
// in one op. Passes make it from a block that runs for each step: one product computes x for all steps, and so do the
// gradients of x and of the weights.
#include "ops/sequence/cell_steps.h"
#include "ops/sequence/simple_run.h"

namespace anabranch::sequence::simple_steps_op {
namespace {

constexpr int kGates = 1;

Act act_of(const KernelArgs& op) { return act_named(op.attr<std::string>("activation")); }

template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.out("Hidden")),
        kept_(op.out("KeptHidden")),
        sums_(op, kGates),
        simple_(act_of(op)) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    if (s_.rows() == 0 || d == 0) return;
    typename On::Room room(c, memory_);
    const Slab<T> states = s_.begin(slab<T>(c[hidden_]), d, room);
    sums_.run(c, s_, room, states);
    simple_.forward(c, d, sums_.state_weight(),
                    {s_.order(), states, slab<T>(c, h0_), slab<T>(c, mask_), slab<T>(c, kept_)});
    s_.finish(c, states, d, slab<T>(c[hidden_]));
  }

 private:
  In mask_, x_, h0_;
  Out hidden_, kept_;
  StepSums<On> sums_;
  StepRows<On> s_;
  SimpleRun<On> simple_;
  typename On::Memory memory_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.in("Hidden")),
        kept_(op.in("KeptHidden")),
        dhidden_(op.in("Hidden@GRAD")),
        dkept_(op.in("KeptHidden@GRAD")),
        dh0_(op.out("H0@GRAD")),
        sums_(op, kGates),
        simple_(act_of(op)) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    typename On::Room room(c, memory_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<T> dsums = s_.own(c, dhidden_, room);
    simple_.backward(c, d, sums_.state_weight(c, s_, room),
                     {.order = s_.order(),
                      .states = s_.ordered(c, slab<T>(c, hidden_), d, room),
                      .dsums = dsums,
                      .dfirst = s_.first_gradient(c, h0_, dh0_, room),
                      .mask = slab<T>(c, mask_),
                      .dkept = mask_ ? s_.own(c, dkept_, room) : Slab<T>{}});
    sums_.give(c, s_, room, dsums, [&](Slab<T> to) {
      const Slab<T> before = room.rows(rows, d);
      s_.steps().gather_previous(c, slab<T>(c, mask_ ? kept_ : hidden_), slab<T>(c, h0_), d, before);
      by_state_.run(c, {.m = d, .n = d, .k = rows, .trans_a = true}, before, dsums, to, false);
    });
  }

 private:
  In mask_, x_, h0_, hidden_, kept_, dhidden_, dkept_;
  Out dh0_;
  StepSumsBack<On> sums_;
  StepRows<On> s_;
  SimpleRun<On> simple_;
  typename On::Product by_state_;
  typename On::Memory memory_;
};

void slots(OpDef& def) {
  def.in("H0", "[batch, D], h before step 0; for sequences by descending length");
  act_attr(def, "activation", "tanh", "activation of the sums");
}

AB_OP(simple_steps)
    .doc(
        "h[t] = f(x[t] and h[t-1] by their weights, with biases). With Mask, the next step reads KeptHidden = Mask "
        "h[t] + (1 - Mask) times the previous one instead of h[t].")
    .source("https://doi.org/10.1207/s15516709cog1402_1")
    .with(step_slots)
    .with(slots)
    .out("Hidden", "[steps, batch, D], h; [rows, D] for sequences")
    .out_optional("KeptHidden", "[steps, batch, D], with Mask")
    .infer([](InferContext& c) {
      check_steps(c, kGates, {"H0"});
      for (const char* slot : {"Hidden", "KeptHidden"}) {
        if (c.has_out(slot)) set_states(c, slot);
      }
      AB_CHECK(c.has_in("Mask") == c.has_out("KeptHidden"), InvalidArgument,
               "KeptHidden must be given if and only if Mask is given");
    })
    .no_grad("inserted after the gradients")
    .with(run_float_on_both<Forward>);

AB_GRAD(simple_steps)
    .doc("Gradients of simple_steps; those of X and of the weights are one product over all steps each.")
    .with(step_gradient_slots)
    .with(slots)
    .in("Hidden", "as in simple_steps")
    .in_optional("KeptHidden", "as in simple_steps")
    .in_optional_list("Hidden@GRAD", "like Hidden; they are summed; zeros if there are none")
    .in_optional_list("KeptHidden@GRAD", "like KeptHidden, likewise")
    .out_optional("H0@GRAD", "like H0")
    .infer([](InferContext& c) {
      check_steps(c, kGates, {"H0"});
      AB_CHECK(c.has_in("KeptHidden") || !c.has_in("Mask"), InvalidArgument,
               "KeptHidden must be given if Mask is given");
      check_state_gradients(c, {"Hidden", "KeptHidden", "Hidden@GRAD", "KeptHidden@GRAD"});
      infer_step_gradients(c, {"H0"});
    })
    .with(run_float_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::simple_steps_op
