// gru on devices, with its gradient.
#include "ops/sequence/gru.h"
#include "ops/sequence/queued_gru.h"

namespace anabranch::sequence {
namespace {

GruOptions rule_of(const ir::Op& op) {
  return {act_named(op.attr<std::string>("gate_activation")), act_named(op.attr<std::string>("activation")),
          op.attr<bool>("origin_mode")};
}

template <class T> class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : x_(op.in("Input")),
        h0_(op.in("H0")),
        weight_(op.in("Weight")),
        bias_(op.in("Bias")),
        gate_(op.out("BatchGate")),
        reset_(op.out("BatchResetHiddenPrev")),
        states_(op.out("BatchHidden")),
        hidden_(op.out("Hidden")),
        reverse_(op.attr<bool>("is_reverse")),
        gru_(rule_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    const int64_t d = c[weight_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    const Slab<T> gates = slab<T>(c[gate_]), states = slab<T>(c[states_]);
    steps_.gather(c, slab<T>(c, x_), 3 * d, gates, slab<T>(c, bias_));
    gru_.forward(c, d, GruWeights<T>::apart(slab<T>(c, weight_), d),
                 {steps_.order(), gates, slab<T>(c[reset_]), states, steps_.first(c, h0_, d, h0_rows_)});
    steps_.scatter(c, states, d, slab<T>(c[hidden_]));
  }

 private:
  In x_, h0_, weight_, bias_;
  Out gate_, reset_, states_, hidden_;
  bool reverse_;
  QueuedSteps<T> steps_;
  QueuedGru<T> gru_;
  device::Scratch h0_rows_;
};

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : x_(op.in("Input")),
        h0_(op.in("H0")),
        weight_(op.in("Weight")),
        gate_(op.in("BatchGate")),
        reset_(op.in("BatchResetHiddenPrev")),
        states_(op.in("BatchHidden")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        reverse_(op.attr<bool>("is_reverse")),
        gru_(rule_of(op.op())) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    const int64_t d = c[weight_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    const int64_t rows = steps_.rows();
    const Slab<const T> first = steps_.first(c, h0_, d, h0_rows_);
    const Slab<T> before = room_for<T>(c, before_rows_, rows, d), dstates = room_for<T>(c, dstate_rows_, rows, d);
    const Slab<T> dgates = room_for<T>(c, dgate_rows_, rows, 3 * d);
    steps_.previous(c, slab<T>(c, states_), first, d, before);
    steps_.gather(c, slab<T>(c, dhidden_), d, dstates);
    Slab<T> dfirst;
    if (first) fill_zero(c, dfirst = room_for<T>(c, dfirst_rows_, steps_.order().widest(), d));
    const auto w = GruWeights<T>::apart(slab<T>(c, weight_), d);
    gru_.backward(c, d, w,
                  {.order = steps_.order(),
                   .gates = slab<T>(c, gate_),
                   .before = before,
                   .dstates = dstates,
                   .dgates = dgates,
                   .dfirst = dfirst,
                   .has_first = static_cast<bool>(first)});
    if (c.needs(dx_)) steps_.scatter(c, dgates, 3 * d, slab<T>(c, dx_));
    if (c.needs(dh0_)) steps_.scatter_first(c, dfirst, d, slab<T>(c, dh0_));
    if (c.needs(dbias_)) steps_.column_sums(c, dgates, 3 * d, 3 * d, slab<T>(c, dbias_));
    if (!c.needs(dweight_)) return;
    gru_.backward_weight(c, rows, d, before, slab<T>(c, reset_), dgates, w, slab<T>(c, dweight_));
  }

 private:
  In x_, h0_, weight_, gate_, reset_, states_, dhidden_;
  Out dx_, dh0_, dweight_, dbias_;
  bool reverse_;
  QueuedSteps<T> steps_;
  QueuedGru<T> gru_;
  device::Scratch h0_rows_, before_rows_, dstate_rows_, dgate_rows_, dfirst_rows_;
};

}  // namespace

template <class T> Kernel queued_gru_forward(const KernelArgs& op) { return Forward<T>(op); }
template Kernel queued_gru_forward<float>(const KernelArgs&);
template Kernel queued_gru_forward<double>(const KernelArgs&);
template <class T> Kernel queued_gru_backward(const KernelArgs& op) { return Backward<T>(op); }
template Kernel queued_gru_backward<float>(const KernelArgs&);
template Kernel queued_gru_backward<double>(const KernelArgs&);

}  // namespace anabranch::sequence
