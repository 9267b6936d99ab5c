// An LSTM over a dense batch [steps, batch, width], or over sequences, in one op. Passes make it from a block that runs
// for each step: one product computes x for all steps, and so do the gradients of x and of the weights.
#include "ops/sequence/cell_steps.h"
#include "ops/sequence/lstm_run.h"

namespace anabranch::sequence::lstm_steps_op {
namespace {

constexpr int kGates = 4;

using Order = std::vector<int32_t>;
using GateOrder = std::array<int, kGates>;  // positions of candidate, input, forget and output

GateOrder order_of(const ir::Op& op) {
  GateOrder order{};
  const auto& given = op.attr<Order>("order");
  AB_CHECK(given.size() == kGates, InvalidArgument, "order must have 4 positions, got {}", given.size());
  std::array<bool, kGates> taken{};
  for (size_t g = 0; g < kGates; ++g) {
    const int place = given[g];
    AB_CHECK(place >= 0 && place < kGates && !taken[static_cast<size_t>(place)], InvalidArgument,
             "order must hold each of 0, 1, 2 and 3, got {} at {}", place, g);
    taken[static_cast<size_t>(place)] = true;
    order[g] = place;
  }
  return order;
}

device::LstmRule rule_of(const GateOrder& order) { return lstm_rule(Act::kSigmoid, Act::kTanh, Act::kTanh, order); }

void check(const InferContext& c) {
  check_steps(c, kGates, {"H0", "C0"});
  order_of(c.op());
}

template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        hidden_(op.out("Hidden")),
        cell_(op.out("Cell")),
        kept_hidden_(op.out("KeptHidden")),
        kept_cell_(op.out("KeptCell")),
        gates_(op.out("Gates")),
        sums_(op, kGates),
        lstm_(rule_of(order_of(op.op()))) {
    sums_.add_to_gate(order_of(op.op())[2], op.attr<float>("forget_bias"));
  }

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    if (s_.rows() == 0 || d == 0) return;
    typename On::Room room(c, memory_);
    const Slab<T> gates = slab<T>(c[gates_]);
    const Slab<T> hiddens = s_.begin(slab<T>(c[hidden_]), d, room), cells = s_.begin(slab<T>(c[cell_]), d, room);
    sums_.run(c, s_, room, gates);
    lstm_.forward(c, d, {.state = sums_.state_weight(), .p = d},
                  {.order = s_.order(),
                   .gates = gates,
                   .cells = cells,
                   .hiddens = hiddens,
                   .carried = hiddens,
                   .first_hidden = slab<T>(c, h0_),
                   .first_cell = slab<T>(c, c0_),
                   .mask = slab<T>(c, mask_),
                   .kept_hiddens = slab<T>(c, kept_hidden_),
                   .kept_cells = slab<T>(c, kept_cell_)});
    s_.finish(c, hiddens, d, slab<T>(c[hidden_]));
    s_.finish(c, cells, d, slab<T>(c[cell_]));
  }

 private:
  In x_, mask_, h0_, c0_;
  Out hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  StepSums<On> sums_;
  StepRows<On> s_;
  LstmRun<On> lstm_;
  typename On::Memory memory_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        hidden_(op.in("Hidden")),
        cell_(op.in("Cell")),
        kept_hidden_(op.in("KeptHidden")),
        kept_cell_(op.in("KeptCell")),
        gates_(op.in("Gates")),
        dhidden_(op.in("Hidden@GRAD")),
        dcell_(op.in("Cell@GRAD")),
        dkept_hidden_(op.in("KeptHidden@GRAD")),
        dkept_cell_(op.in("KeptCell@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        sums_(op, kGates),
        lstm_(rule_of(order_of(op.op()))) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    s_.cut(c, x_, h0_);
    typename On::Room room(c, memory_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<T> dgates = room.rows(rows, kGates * d);
    lstm_.backward(c, room, d, {.state = sums_.state_weight(c, s_, room), .p = d},
                   {.rows = s_.steps(),
                    .gates = slab<T>(c, gates_),
                    .cells = s_.ordered(c, slab<T>(c, cell_), d, room),
                    .first_cell = slab<T>(c, c0_),
                    .dresult = s_.given(c, dhidden_, room),
                    .dcells = dcell_ ? s_.own(c, dcell_, room) : Slab<T>{},
                    .dgates = dgates,
                    .dfirst_hidden = c.needs(dh0_) || mask_ ? s_.first_gradient(c, h0_, dh0_, room) : Slab<T>{},
                    .dfirst_cell = s_.first_gradient(c, c0_, dc0_, room),
                    .mask = slab<T>(c, mask_),
                    .kept_cells = slab<T>(c, kept_cell_),
                    .dkept_hiddens = mask_ ? s_.own(c, dkept_hidden_, room) : Slab<T>{},
                    .dkept_cells = mask_ ? s_.own(c, dkept_cell_, room) : Slab<T>{}});
    sums_.give(c, s_, room, dgates, [&](Slab<T> to) {
      const Slab<T> before = room.rows(rows, d);
      s_.steps().gather_previous(c, slab<T>(c, mask_ ? kept_hidden_ : hidden_), slab<T>(c, h0_), d, before);
      by_state_.run(c, {.m = d, .n = kGates * d, .k = rows, .trans_a = true}, before, dgates, to, false);
    });
  }

 private:
  In x_, mask_, h0_, c0_, hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  In dhidden_, dcell_, dkept_hidden_, dkept_cell_;
  Out dh0_, dc0_;
  StepSumsBack<On> sums_;
  StepRows<On> s_;
  LstmRun<On> lstm_;
  typename On::Product by_state_;
  typename On::Memory memory_;
};

void slots(OpDef& def) {
  def.in("H0", "[batch, D], h before step 0; for sequences by descending length")
      .in("C0", "[batch, D], c before step 0, likewise")
      .attr<Order>("order", {0, 1, 2, 3}, "positions of candidate, input, forget and output gate")
      .attr<float>("forget_bias", 0.0f, "added to the sums of the forget gate");
}

AB_OP(lstm_steps)
    .doc(
        "Gates of step t: x[t] and h[t-1] by their weights, with biases; c[t] = sigmoid(forget) c[t-1] + "
        "sigmoid(input) tanh(candidate), h[t] = sigmoid(output) tanh(c[t]). With Mask, the next step reads KeptHidden "
        "and KeptCell instead: Mask times the new state + (1 - Mask) times the previous one.")
    .source("https://arxiv.org/abs/1308.0850")
    .with(step_slots)
    .with(slots)
    .out("Hidden", "[steps, batch, D], h; [rows, D] for sequences")
    .out("Cell", "[steps, batch, D], c, likewise")
    .out_optional("KeptHidden", "[steps, batch, D], with Mask")
    .out_optional("KeptCell", "[steps, batch, D], with Mask")
    .out("Gates", "[steps, batch, 4 D] or [rows, 4 D] in the order of steps, candidate and gates, for the gradient")
    .infer([](InferContext& c) {
      check(c);
      for (const char* slot : {"Hidden", "Cell", "KeptHidden", "KeptCell"}) {
        if (c.has_out(slot)) set_states(c, slot);
      }
      AB_CHECK(c.has_in("Mask") == c.has_out("KeptHidden") && c.has_in("Mask") == c.has_out("KeptCell"),
               InvalidArgument, "KeptHidden and KeptCell must be given if and only if Mask is given");
      c.set_out("Gates", steps_shape(c, kGates), c.in("X").dtype);
    })
    .no_grad("inserted after the gradients")
    .with(run_float_on_both<Forward>);

AB_GRAD(lstm_steps)
    .doc("Gradients of lstm_steps; those of X and of the weights are one product over all steps each.")
    .with(step_gradient_slots)
    .with(slots)
    .in("Hidden", "as in lstm_steps")
    .in("Cell", "as in lstm_steps")
    .in_optional("KeptHidden", "as in lstm_steps")
    .in_optional("KeptCell", "as in lstm_steps")
    .in("Gates", "as in lstm_steps")
    .in_optional_list("Hidden@GRAD", "like Hidden; they are summed; zeros if there are none")
    .in_optional_list("Cell@GRAD", "like Cell, likewise")
    .in_optional_list("KeptHidden@GRAD", "like KeptHidden, likewise")
    .in_optional_list("KeptCell@GRAD", "like KeptCell, likewise")
    .out_optional("H0@GRAD", "like H0")
    .out_optional("C0@GRAD", "like C0")
    .infer([](InferContext& c) {
      check(c);
      for (const char* slot : {"Hidden", "Cell", "KeptHidden", "KeptCell"}) {
        AB_CHECK(c.has_in(slot) || !c.has_in("Mask"), InvalidArgument, "{} must be given if Mask is given", slot);
      }
      check_state_gradients(c, {"Hidden", "Cell", "KeptHidden", "KeptCell"});
      check_state_gradients(c, {"Hidden@GRAD", "Cell@GRAD", "KeptHidden@GRAD", "KeptCell@GRAD"});
      check_shape(c, "Gates", steps_shape(c, kGates));
      infer_step_gradients(c, {"H0", "C0"});
    })
    .with(run_float_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::lstm_steps_op
