// An LSTM over a dense batch [steps, batch, width], or over sequences, in one op. Passes make it from a block that runs
// for each step: one product computes x for all steps, and so do the gradients of x and of the weights.
#include <algorithm>

#include "ops/sequence/cell_steps.h"
#include "ops/sequence/lstm_panels.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence::lstm_steps_op {
namespace {

constexpr int kGates = 4;

using Order = std::vector<int32_t>;

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

Order places_of(const ir::Op& op) {
  const GateOrder order = order_of(op);
  return {order.begin(), order.end()};
}

LstmPanels::Weights weights_of(const float* state, int64_t d, const GateOrder& order) {
  return {state, d, order, {Act::kSigmoid, Act::kTanh, Act::kTanh, nullptr, nullptr, nullptr, 0.0f}};
}

void check(const InferContext& c) {
  check_steps(c, kGates, {"H0", "C0"});
  order_of(c.op());
}

class Forward {
 public:
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
        order_(order_of(op.op())),
        sums_(op, kGates) {
    sums_.add_to_gate(order_[2], op.attr<float>("forget_bias"));
  }

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    if (s_.rows() == 0 || s_.d() == 0) return;
    Workspace room;
    auto *gates = c[gates_].mutable_data<float>(), *all_hidden = c[hidden_].mutable_data<float>(),
         *all_cells = c[cell_].mutable_data<float>();
    float *hiddens = s_.begin(all_hidden, s_.d(), room), *cells = s_.begin(all_cells, s_.d(), room);
    sums_.run(c, s_, gates);
    panels_->forward(c, s_.steps(), weights_of(sums_.state_weight(), s_.d(), order_),
                     {.gates = gates,
                      .hidden = c[h0_].data<float>(),
                      .cell = c[c0_].data<float>(),
                      .hiddens = hiddens,
                      .cells = cells,
                      .mask = mask_of(c, mask_),
                      .kept_hiddens = mask_ ? c[kept_hidden_].mutable_data<float>() : nullptr,
                      .kept_cells = mask_ ? c[kept_cell_].mutable_data<float>() : nullptr});
    s_.finish(c, hiddens, s_.d(), all_hidden);
    s_.finish(c, cells, s_.d(), all_cells);
  }

 private:
  In x_, mask_, h0_, c0_;
  Out hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  GateOrder order_;
  StepSums sums_;
  StepRows s_;
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
};

class Backward {
 public:
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
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        dhidden_(op, "Hidden@GRAD"),
        dcell_(op, "Cell@GRAD"),
        dkept_hidden_(op, "KeptHidden@GRAD"),
        dkept_cell_(op, "KeptCell@GRAD"),
        order_(order_of(op.op())),
        sums_(op, kGates) {}

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    Workspace room;
    auto* dgates = room.get<float>(s_.rows() * kGates * s_.d());
    run(c, dgates);
    sums_.give(c, s_, dgates, [&](float* to) {
      auto* before = room.get<float>(s_.rows() * s_.d());
      s_.previous(c, c[mask_ ? kept_hidden_ : hidden_].data<float>(), c[h0_].data<float>(), before);
      by_state_->run(c, {.m = s_.d(), .n = kGates * s_.d(), .k = s_.rows(), .trans_a = true}, before, dgates, to);
    });
  }

 private:
  void run(KernelContext& c, float* dgates) {
    const bool masked = static_cast<bool>(mask_);
    Workspace room;
    panels_->backward(c, s_.steps(), weights_of(sums_.state_weight(c, s_), s_.d(), order_),
                      {.gates = c[gates_].data<float>(),
                       .cells = s_.ordered(c, c[cell_].data<float>(), s_.d(), room),
                       .first_cell = c[c0_].data<float>(),
                       .dhiddens = dhidden_.read(c, s_),
                       .dcells = dcell_.ordered(c, s_, room),
                       .dgates = dgates,
                       .dfirst_cell = first_gradient(c, c0_, dc0_, dc0_rows_),
                       .dfirst_hidden = masked || c.needs(dh0_) ? first_gradient(c, h0_, dh0_, dh0_rows_) : nullptr,
                       .mask = mask_of(c, mask_),
                       .kept_cells = masked ? c[kept_cell_].data<float>() : nullptr,
                       .dkept_hiddens = masked ? dkept_hidden_.own(c, s_) : nullptr,
                       .dkept_cells = masked ? dkept_cell_.own(c, s_) : nullptr});
  }

  static std::shared_ptr<Tensor> rows() { return std::make_shared<Tensor>(); }

  In x_, mask_, h0_, c0_, hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  Out dh0_, dc0_;
  GivenGradient dhidden_, dcell_, dkept_hidden_, dkept_cell_;
  GateOrder order_;
  StepSumsBack sums_;
  StepRows s_;
  std::shared_ptr<Tensor> dh0_rows_ = rows(), dc0_rows_ = rows();
  std::shared_ptr<LstmPanels> panels_ = std::make_shared<LstmPanels>();
  std::shared_ptr<Gemm<float>> by_state_ = std::make_shared<Gemm<float>>();
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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Forward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_lstm_steps(op, places_of(op.op())); });

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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Backward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_lstm_steps_grad(op, places_of(op.op())); });

}  // namespace
}  // namespace anabranch::sequence::lstm_steps_op
