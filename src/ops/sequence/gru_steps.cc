// Gated recurrent units over a dense batch [steps, batch, width], or over sequences, in one op. Passes make it from a
// block that runs for each step: one product computes x for all steps, and so do the gradients of x and of the weights.
#include <algorithm>

#include "ops/declare/attr_checks.h"
#include "ops/sequence/cell_steps.h"
#include "ops/sequence/gru_panels.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence::gru_steps_op {
namespace {

constexpr int kGates = 3;

GruPanels::Weights weights_of(const KernelArgs& op) {
  const loops::GruRule rule{act_named(op.attr<std::string>("gate_activation")),
                            act_named(op.attr<std::string>("activation")), op.attr<bool>("origin_mode")};
  return {nullptr, 0, nullptr, 0, 0, rule};
}

GruPanels::Weights placed(GruPanels::Weights weights, const float* state, int64_t d) {
  weights.gates = state;
  weights.candidate = state + 2 * d;
  weights.ld_gates = weights.ld_candidate = kGates * d;
  weights.d = d;
  return weights;
}

class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        hidden_(op.out("Hidden")),
        kept_(op.out("KeptHidden")),
        gates_(op.out("Gates")),
        left_(op.out("Left")),
        weights_(weights_of(op)),
        sums_(op, kGates) {}

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    if (s_.rows() == 0 || s_.d() == 0) return;
    Workspace room;
    auto *gates = c[gates_].mutable_data<float>(), *all = c[hidden_].mutable_data<float>();
    float* states = s_.begin(all, s_.d(), room);
    sums_.run(c, s_, gates);
    panels_->forward(c, s_.steps(), placed(weights_, sums_.state_weight(), s_.d()),
                     {.gates = gates,
                      .first = c[h0_].data<float>(),
                      .left = c[left_].mutable_data<float>(),
                      .states = states,
                      .mask = mask_of(c, mask_),
                      .kept = mask_ ? c[kept_].mutable_data<float>() : nullptr});
    s_.finish(c, states, s_.d(), all);
  }

 private:
  In x_, mask_, h0_;
  Out hidden_, kept_, gates_, left_;
  GruPanels::Weights weights_;
  StepSums sums_;
  StepRows s_;
  std::shared_ptr<GruPanels> panels_ = std::make_shared<GruPanels>();
};

class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : x_(op.in("X")),
        mask_(op.in("Mask")),
        h0_(op.in("H0")),
        hidden_(op.in("Hidden")),
        kept_(op.in("KeptHidden")),
        gates_(op.in("Gates")),
        left_(op.in("Left")),
        dh0_(op.out("H0@GRAD")),
        dhidden_(op, "Hidden@GRAD"),
        dkept_(op, "KeptHidden@GRAD"),
        weights_(weights_of(op)),
        sums_(op, kGates) {}

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    Workspace room;
    auto* dgates = room.get<float>(s_.rows() * kGates * s_.d());
    run(c, dgates);
    sums_.give(c, s_, dgates,
               [&](float* to) { give_state_weight(c, dgates, room.get<float>(s_.rows() * s_.d()), to); });
  }

 private:
  void run(KernelContext& c, float* dgates) {
    Workspace room;
    panels_->backward(c, s_.steps(), placed(weights_, sums_.state_weight(c, s_), s_.d()),
                      {.gates = c[gates_].data<float>(),
                       .states = s_.ordered(c, c[hidden_].data<float>(), s_.d(), room),
                       .first = c[h0_].data<float>(),
                       .dstates = dhidden_.ordered(c, s_, room),
                       .dgates = dgates,
                       .dfirst = first_gradient(c, h0_, dh0_, dfirst_rows_),
                       .mask = mask_of(c, mask_),
                       .kept = mask_ ? c[kept_].data<float>() : nullptr,
                       .dkept = mask_ ? dkept_.own(c, s_) : nullptr});
  }

  // scratch for the state before each row
  void give_state_weight(KernelContext& c, const float* dgates, float* before, float* to) {
    const int64_t d = s_.d(), rows = s_.rows(), wide = kGates * d;
    s_.previous(c, c[mask_ ? kept_ : hidden_].data<float>(), c[h0_].data<float>(), before);
    to_gates_->run(c, {.m = d, .n = 2 * d, .k = rows, .trans_a = true, .ld_b = wide, .ld_c = wide}, before, dgates, to);
    to_candidate_->run(c, {.m = d, .n = d, .k = rows, .trans_a = true, .ld_b = wide, .ld_c = wide},
                       c[left_].data<float>(), dgates + 2 * d, to + 2 * d);
  }

  static std::shared_ptr<Tensor> rows() { return std::make_shared<Tensor>(); }

  In x_, mask_, h0_, hidden_, kept_, gates_, left_;
  Out dh0_;
  GivenGradient dhidden_, dkept_;
  GruPanels::Weights weights_;
  StepSumsBack sums_;
  StepRows s_;
  std::shared_ptr<Tensor> dfirst_rows_ = rows();
  std::shared_ptr<GruPanels> panels_ = std::make_shared<GruPanels>();
  std::shared_ptr<Gemm<float>> to_gates_ = std::make_shared<Gemm<float>>(),
                               to_candidate_ = std::make_shared<Gemm<float>>();
};

void slots(OpDef& def) {
  def.in("H0", "[batch, D], h before step 0; for sequences by descending length");
  act_attr(def, "activation", "tanh", "activation of the candidate");
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  def.attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate");
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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Forward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_gru_steps(op); });

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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Backward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_gru_steps_grad(op); });

}  // namespace
}  // namespace anabranch::sequence::gru_steps_op
