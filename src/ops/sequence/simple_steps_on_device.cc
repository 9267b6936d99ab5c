// simple_steps on devices, with its gradient: one product and one kernel per step.
#include "ops/sequence/queued_cells.h"
#include "ops/sequence/steps_on_device.h"

namespace anabranch::sequence {
namespace {

constexpr int kGates = 1;

// Applies the activation to the rows of a step.
class StepAct {
 public:
  StepAct(const KernelArgs& op, const char* kernel)
      : kernel_(device::kernel_of<float>(kernel)),
        act_(static_cast<int32_t>(act_named(op.attr<std::string>("activation")))) {}
  void run(const DeviceContext& c, Slab<const float> y, Slab<float> x) const {
    device::ClippedActArgs a{};
    a.y = y.in();
    a.x = x.out();
    a.n = x.count;
    a.act = act_;
    c.launch(kernel_, a);
  }

 private:
  ab_kernel kernel_;
  int32_t act_;
};

class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.out("Hidden")),
        kept_(op.out("KeptHidden")),
        act_(op, "clipped_act"),
        sums_(op, kGates) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d();
    const Slab<float> states = s_.begin(c, slab<float>(c[hidden_]), d, rows_);
    Kept<float> kept;
    if (mask_) kept = {slab<float>(c, mask_), slab<float>(c[kept_])};
    sums_.run(c, s_, states);
    for (int64_t t = 0; t < s_.order().count(); ++t) {
      const int64_t at = s_.order().begin(t), n = s_.order().rows(t);
      Slab<const float> before = slab<float>(c, h0_).rows(0, n, d);
      if (t > 0) before = (kept ? kept.states : states).rows(s_.order().begin(t - 1), n, d);
      const Slab<float> now = states.rows(at, n, d);
      by_state_.run(c, {.m = n, .n = d, .k = d}, before, sums_.state_weight(), now, true);
      act_.run(c, {}, now);
      if (kept) keep_.forward(c, at, n, d, now, before, kept);
    }
    s_.finish(c, states, d, slab<float>(c[hidden_]));
  }

 private:
  In mask_, x_, h0_;
  Out hidden_, kept_;
  StepAct act_;
  QueuedStepSums sums_;
  QueuedStepRows s_;
  QueuedKeep<float> keep_;
  device::Scratch rows_;
  device::GemmByRows<float> by_state_;
};

class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : mask_(op.in("Mask")),
        x_(op.in("X")),
        h0_(op.in("H0")),
        hidden_(op.in("Hidden")),
        kept_(op.in("KeptHidden")),
        dhidden_(op.in("Hidden@GRAD")),
        dkept_(op.in("KeptHidden@GRAD")),
        dh0_(op.out("H0@GRAD")),
        act_(op, "clipped_act_grad"),
        sums_(op, kGates) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    s_.cut(c, x_, h0_);
    const int64_t d = s_.d(), rows = s_.rows();
    const Slab<float> dsums = s_.given(c, dhidden_, dstate_rows_);
    run(c, dsums);
    sums_.give(c, s_, dsums, [&](Slab<float> to) {
      const Slab<float> before = room_for<float>(c, before_rows_, rows, d);
      s_.steps().gather_previous(c, slab<float>(c, mask_ ? kept_ : hidden_), slab<float>(c, h0_), d, before);
      to_weight_.run(c, {.m = d, .n = d, .k = rows, .trans_a = true}, before, dsums, to, false);
    });
  }

 private:
  // Converts gradients of states to those of the sums.
  void run(const DeviceContext& c, Slab<float> dsums) {
    const int64_t d = s_.d();
    const Slab<const float> weight = sums_.state_weight(c, s_);
    const Slab<const float> states = s_.ordered(c, slab<float>(c, hidden_), d, state_rows_);
    const Slab<float> dfirst = first_gradient(c, h0_, dh0_, dfirst_rows_);
    KeptGradient<float> dkept;
    if (mask_) dkept = {slab<float>(c, mask_), s_.given(c, dkept_, dkept_rows_)};
    for (int64_t t = s_.order().count() - 1; t >= 0; --t) {
      const int64_t at = s_.order().begin(t), n = s_.order().rows(t);
      Slab<float> dbefore = dfirst.rows(0, n, d);
      if (t > 0) dbefore = (dkept ? dkept.dstates : dsums).rows(s_.order().begin(t - 1), n, d);
      const Slab<float> now = dsums.rows(at, n, d);
      if (dkept) keep_.backward(c, at, n, d, dkept, now, dbefore);
      act_.run(c, states.rows(at, n, d), now);
      by_state_.run(c, {.m = n, .n = d, .k = d, .trans_b = true}, now, weight, dbefore, true);
    }
  }

  In mask_, x_, h0_, hidden_, kept_, dhidden_, dkept_;
  Out dh0_;
  StepAct act_;
  QueuedStepSumsBack sums_;
  QueuedStepRows s_;
  QueuedKeep<float> keep_;
  device::Scratch state_rows_, dstate_rows_, before_rows_, dfirst_rows_, dkept_rows_;
  device::GemmByRows<float> by_state_;
  device::PartGemm<float> to_weight_;
};

}  // namespace

Kernel queued_simple_steps(const KernelArgs& op) { return Forward(op); }
Kernel queued_simple_steps_grad(const KernelArgs& op) { return Backward(op); }

}  // namespace anabranch::sequence
