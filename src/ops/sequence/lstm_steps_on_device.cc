// lstm_steps on devices, with its gradient.
#include "ops/sequence/queued_cells.h"
#include "ops/sequence/queued_lstm.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence {
namespace {

constexpr int kGates = 4;

device::LstmRule rule_of(const std::vector<int32_t>& order) {
  device::LstmRule rule{};
  std::copy_n(order.begin(), kGates, rule.places);
  rule.gate = static_cast<int32_t>(Act::kSigmoid);
  rule.candidate = rule.cell = static_cast<int32_t>(Act::kTanh);
  return rule;
}

class Forward {
 public:
  Forward(const KernelArgs& op, const std::vector<int32_t>& order)
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
        lstm_(rule_of(order)) {
    sums_.add_to_gate(order[2], op.attr<float>("forget_bias"));
  }

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    const Slab<float> gates = slab<float>(c[gates_]);
    const Slab<float> hiddens = s_.begin(c, slab<float>(c[hidden_]), d, hidden_rows_);
    const Slab<float> cells = s_.begin(c, slab<float>(c[cell_]), d, cell_rows_);
    sums_.run(c, s_, gates);
    lstm_.forward(c, d, {.state = sums_.state_weight(), .p = d},
                  {.order = s_.order(),
                   .gates = gates,
                   .cells = cells,
                   .hiddens = hiddens,
                   .carried = hiddens,
                   .first_hidden = slab<float>(c, h0_),
                   .first_cell = slab<float>(c, c0_),
                   .kept_hiddens = kept(c, kept_hidden_),
                   .kept_cells = kept(c, kept_cell_)});
    s_.finish(c, hiddens, d, slab<float>(c[hidden_]));
    s_.finish(c, cells, d, slab<float>(c[cell_]));
  }

 private:
  Kept<float> kept(const DeviceContext& c, Out states) const {
    return mask_ ? Kept<float>{slab<float>(c, mask_), slab<float>(c[states])} : Kept<float>{};
  }

  In x_, mask_, h0_, c0_;
  Out hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  QueuedStepSums sums_;
  QueuedStepRows s_;
  QueuedLstm<float> lstm_;
  device::Scratch hidden_rows_, cell_rows_;
};

class Backward {
 public:
  Backward(const KernelArgs& op, const std::vector<int32_t>& order)
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
        lstm_(rule_of(order)) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<float> dgates = room_for<float>(c, dgate_rows_, rows, kGates * d);
    run(c, dgates);
    sums_.give(c, s_, dgates, [&](Slab<float> to) {
      const Slab<float> before = room_for<float>(c, before_rows_, rows, d);
      s_.steps().gather_previous(c, slab<float>(c, mask_ ? kept_hidden_ : hidden_), slab<float>(c, h0_), d, before);
      by_state_.run(c, {.m = d, .n = kGates * d, .k = rows, .trans_a = true}, before, dgates, to, false);
    });
  }

 private:
  void run(const DeviceContext& c, Slab<float> dgates) {
    const int64_t d = s_.d();
    lstm_.backward(c, d, {.state = sums_.state_weight(c, s_), .p = d},
                   {.order = s_.order(),
                    .gates = slab<float>(c, gates_),
                    .cells = s_.ordered(c, slab<float>(c, cell_), d, cell_rows_),
                    .first_cell = slab<float>(c, c0_),
                    .kept_cells = mask_ ? slab<float>(c, kept_cell_) : Slab<const float>{},
                    .dcarried = s_.given(c, dhidden_, dhidden_rows_),
                    .dcells = s_.given(c, dcell_, dcell_rows_),
                    .dgates = dgates,
                    .dfirst_hidden = first_gradient(c, h0_, dh0_, dh0_rows_),
                    .dfirst_cell = first_gradient(c, c0_, dc0_, dc0_rows_),
                    .dkept_hiddens = kept(c, dkept_hidden_, dkept_hidden_rows_),
                    .dkept_cells = kept(c, dkept_cell_, dkept_cell_rows_)});
  }

  KeptGradient<float> kept(const DeviceContext& c, In gradients, device::Scratch& memory) {
    return mask_ ? KeptGradient<float>{slab<float>(c, mask_), s_.given(c, gradients, memory)} : KeptGradient<float>{};
  }

  In x_, mask_, h0_, c0_, hidden_, cell_, kept_hidden_, kept_cell_, gates_;
  In dhidden_, dcell_, dkept_hidden_, dkept_cell_;
  Out dh0_, dc0_;
  QueuedStepSumsBack sums_;
  QueuedStepRows s_;
  QueuedLstm<float> lstm_;
  device::PartGemm<float> by_state_;
  device::Scratch dgate_rows_, before_rows_, cell_rows_, dhidden_rows_, dcell_rows_, dh0_rows_, dc0_rows_,
      dkept_hidden_rows_, dkept_cell_rows_;
};

}  // namespace

Kernel queued_lstm_steps(const KernelArgs& op, const std::vector<int32_t>& order) { return Forward(op, order); }
Kernel queued_lstm_steps_grad(const KernelArgs& op, const std::vector<int32_t>& order) { return Backward(op, order); }

}  // namespace anabranch::sequence
