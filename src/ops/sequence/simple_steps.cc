// A simple recurrence - one product and its activation - over a dense batch [steps, batch, width], or over sequences,
// in one op. Passes make it from a block that runs for each step: one product computes x for all steps, and so do the
// gradients of x and of the weights.
#include "ops/sequence/cell_steps.h"
#include "ops/sequence/simple_panels.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence::simple_steps_op {
namespace {

constexpr int kGates = 1;

Act act_of(const KernelArgs& op) { return act_named(op.attr<std::string>("activation")); }

class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.out("Hidden")),
        kept_(op.out("KeptHidden")),
        act_(act_of(op)),
        sums_(op, kGates) {}

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    if (s_.rows() == 0 || s_.d() == 0) return;
    Workspace room;
    auto* all = c[hidden_].mutable_data<float>();
    float* states = s_.begin(all, s_.d(), room);
    sums_.run(c, s_, states);
    panels_->forward(c, s_.steps(), {sums_.state_weight(), s_.d(), act_},
                     {.states = states,
                      .first = c[h0_].data<float>(),
                      .mask = mask_of(c, mask_),
                      .kept = mask_ ? c[kept_].mutable_data<float>() : nullptr});
    s_.finish(c, states, s_.d(), all);
  }

 private:
  In mask_, x_, h0_;
  Out hidden_, kept_;
  Act act_;
  StepSums sums_;
  StepRows s_;
  std::shared_ptr<SimplePanels> panels_ = std::make_shared<SimplePanels>();
};

class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.in("Hidden")),
        kept_(op.in("KeptHidden")),
        dh0_(op.out("H0@GRAD")),
        dhidden_(op, "Hidden@GRAD"),
        dkept_(op, "KeptHidden@GRAD"),
        act_(act_of(op)),
        sums_(op, kGates) {}

  void operator()(KernelContext& c) {
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d(), rows = s_.rows();
    Workspace room;
    auto* dsums = room.get<float>(rows * d);
    panels_->backward(c, s_.steps(), {sums_.state_weight(c, s_), d, act_},
                      {.states = s_.ordered(c, c[hidden_].data<float>(), d, room),
                       .dstates = dhidden_.ordered(c, s_, room),
                       .dsums = dsums,
                       .dfirst = first_gradient(c, h0_, dh0_, dfirst_rows_),
                       .mask = mask_of(c, mask_),
                       .dkept = mask_ ? dkept_.own(c, s_) : nullptr});
    sums_.give(c, s_, dsums, [&](float* to) {
      auto* before = room.get<float>(rows * d);
      s_.previous(c, c[mask_ ? kept_ : hidden_].data<float>(), c[h0_].data<float>(), before);
      by_state_->run(c, {.m = d, .n = d, .k = rows, .trans_a = true}, before, dsums, to);
    });
  }

 private:
  In mask_, x_, h0_, hidden_, kept_;
  Out dh0_;
  GivenGradient dhidden_, dkept_;
  Act act_;
  StepSumsBack sums_;
  StepRows s_;
  std::shared_ptr<Tensor> dfirst_rows_ = std::make_shared<Tensor>();
  std::shared_ptr<SimplePanels> panels_ = std::make_shared<SimplePanels>();
  std::shared_ptr<Gemm<float>> by_state_ = std::make_shared<Gemm<float>>();
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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Forward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_simple_steps(op); });

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
    .cpu<float>([](auto, const KernelArgs& op) -> Kernel { return Backward(op); })
    .device<float>([](auto, const KernelArgs& op) { return queued_simple_steps_grad(op); });

}  // namespace
}  // namespace anabranch::sequence::simple_steps_op
