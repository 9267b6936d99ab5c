// gru_steps on devices, with its gradient.
#include "ops/sequence/queued_cells.h"
#include "ops/sequence/queued_gru.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence {
namespace {

constexpr int kGates = 3;

GruOptions options_of(const ir::Op& op) {
  return {act_named(op.attr<std::string>("gate_activation")), act_named(op.attr<std::string>("activation")),
          op.attr<bool>("origin_mode")};
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
        sums_(op, kGates),
        gru_(options_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    const Slab<float> gates = slab<float>(c[gates_]);
    const Slab<float> states = s_.begin(c, slab<float>(c[hidden_]), d, rows_);
    sums_.run(c, s_, gates);
    gru_.forward(c, d, GruWeights<float>::side_by_side(sums_.state_weight(), d),
                 {.order = s_.order(),
                  .gates = gates,
                  .left = slab<float>(c[left_]),
                  .states = states,
                  .first = slab<float>(c, h0_),
                  .kept = mask_ ? Kept<float>{slab<float>(c, mask_), slab<float>(c[kept_])} : Kept<float>{}});
    s_.finish(c, states, d, slab<float>(c[hidden_]));
  }

 private:
  In x_, mask_, h0_;
  Out hidden_, kept_, gates_, left_;
  QueuedStepSums sums_;
  QueuedStepRows s_;
  QueuedGru<float> gru_;
  device::Scratch rows_;
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
        dhidden_(op.in("Hidden@GRAD")),
        dkept_(op.in("KeptHidden@GRAD")),
        dh0_(op.out("H0@GRAD")),
        sums_(op, kGates),
        gru_(options_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<float> dgates = room_for<float>(c, dgate_rows_, rows, kGates * d);
    const Slab<float> before = room_for<float>(c, before_rows_, rows, d);
    s_.steps().gather_previous(c, slab<float>(c, mask_ ? kept_ : hidden_), slab<float>(c, h0_), d, before);
    const auto w = GruWeights<float>::side_by_side(sums_.state_weight(c, s_), d);
    KeptGradient<float> dkept;
    if (mask_) dkept = {slab<float>(c, mask_), s_.given(c, dkept_, dkept_rows_)};
    gru_.backward(c, d, w,
                  {.order = s_.order(),
                   .gates = slab<float>(c, gates_),
                   .before = before,
                   .dstates = s_.given(c, dhidden_, dstate_rows_),
                   .dgates = dgates,
                   .dfirst = first_gradient(c, h0_, dh0_, dfirst_rows_),
                   .dkept = dkept});
    sums_.give(c, s_, dgates,
               [&](Slab<float> to) { gru_.backward_weight(c, rows, d, before, slab<float>(c, left_), dgates, w, to); });
  }

 private:
  In x_, mask_, h0_, hidden_, kept_, gates_, left_, dhidden_, dkept_;
  Out dh0_;
  QueuedStepSumsBack sums_;
  QueuedStepRows s_;
  QueuedGru<float> gru_;
  device::Scratch dgate_rows_, before_rows_, dstate_rows_, dfirst_rows_, dkept_rows_;
};

}  // namespace

Kernel queued_gru_steps(const KernelArgs& op) { return Forward(op); }
Kernel queued_gru_steps_grad(const KernelArgs& op) { return Backward(op); }

}  // namespace anabranch::sequence
