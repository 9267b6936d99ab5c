// Gated recurrent units over sequences: all sequences of a batch at once, step by step.
#include <algorithm>
#include <type_traits>

#include "ops/kernels/work.h"
#include "ops/kernels/workspace.h"
#include "ops/sequence/gru.h"
#include "ops/sequence/gru_panels.h"
#include "ops/sequence/gru_step.h"

namespace anabranch::sequence::gru_op {
namespace {

int64_t check_gru(const InferContext& c) {
  for (const char* slot : {"Input", "Weight"}) {
    check_tensor(c, slot);
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "Input");
  }
  const int64_t d = c.in("Weight").shape[0], wide = d == kUnknown ? kUnknown : 3 * d;
  check_shape(c, "Weight", Shape{d, wide});
  check_shape(c, "Input", Shape{kUnknown, wide});
  check_bias(c);
  return d;
}

GruOptions options_of(const ir::Op& op) {
  return {act_named(op.attr<std::string>("gate_activation")), act_named(op.attr<std::string>("activation")),
          op.attr<bool>("origin_mode")};
}

loops::GruRule rule_of(const ir::Op& op) {
  const GruOptions options = options_of(op);
  return {options.gate, options.candidate, options.origin};
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
        rule_(rule_of(op.op())),
        step_(options_of(op.op())) {}

  void operator()(KernelContext& c) {
    d_ = c[weight_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    T* gate = c[gate_].template mutable_data<T>();
    steps_.gather_add(c, c[x_].data<T>(), bias_ ? c[bias_].data<T>() : nullptr, 3 * d_, gate);
    const T* before = steps_.first<T>(c, h0_, d_, first_);
    T *states = c[states_].template mutable_data<T>(), *reset = c[reset_].template mutable_data<T>();
    run(c, before, gate, reset, states);
    steps_.scatter(c, states, d_, c[hidden_].template mutable_data<T>());
  }

 private:
  void run(KernelContext& c, const T* before, T* gate, T* reset, T* states) {
    if constexpr (std::is_same_v<T, float>) {
      return panels_->forward(c, steps_, GruPanels::Weights::of_gru(c[weight_].data<T>(), d_, rule_),
                              {gate, before, reset, states});
    }
    for (int64_t t = 0; t < steps_.count(); ++t) {
      const int64_t at = steps_.begin(t);
      step_.forward(c, steps_.rows(t), d_, c[weight_].data<T>(), before, gate + at * 3 * d_, reset + at * d_,
                    states + at * d_);
      before = states + at * d_;
    }
  }

  In x_, h0_, weight_, bias_;
  Out gate_, reset_, states_, hidden_;
  bool reverse_;
  loops::GruRule rule_;
  GruStep<T> step_;
  int64_t d_ = 0;
  Steps steps_;
  std::shared_ptr<GruPanels> panels_ = std::make_shared<GruPanels>();
  std::shared_ptr<Tensor> first_ = std::make_shared<Tensor>();
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
        rule_(rule_of(op.op())),
        step_(options_of(op.op())) {}

  void operator()(KernelContext& c) {
    d_ = c[weight_].rows();
    rows_ = c[x_].rows();
    steps_.cut(offsets(c[x_]), reverse_);
    first_ = steps_.first<T>(c, h0_, d_, h0_rows_);
    Workspace room;
    dstates_ = room.get<T>(rows_ * d_);
    steps_.gather(c, c[dhidden_].data<T>(), d_, dstates_);
    dfirst_ = sized<T>(dfirst_rows_, steps_.widest(), d_);
    std::fill(dfirst_, dfirst_ + steps_.widest() * d_, T{0});
    dgate_ = room.get<T>(rows_ * 3 * d_);
    run(c);
    give(c, room);
  }

 private:
  void run(KernelContext& c) {
    if constexpr (std::is_same_v<T, float>) {
      return panels_->backward(c, steps_, GruPanels::Weights::of_gru(c[weight_].template data<T>(), d_, rule_),
                               {.gates = c[gate_].template data<T>(),
                                .states = c[states_].template data<T>(),
                                .first = first_,
                                .dstates = dstates_,
                                .dgates = dgate_,
                                .dfirst = dfirst_});
    }
    for (int64_t t = steps_.count() - 1; t >= 0; --t) step(c, t);
  }

  void step(KernelContext& c, int64_t t) {
    const int64_t at = steps_.begin(t), d = d_, past = t > 0 ? steps_.begin(t - 1) : 0;
    const T* before = t > 0 ? c[states_].data<T>() + past * d : first_;
    step_.backward(c, steps_.rows(t), d, c[weight_].data<T>(), before, c[gate_].data<T>() + at * 3 * d,
                   dstates_ + at * d, dgate_ + at * 3 * d, t > 0 ? dstates_ + past * d : dfirst_);
  }

  void give(KernelContext& c, Workspace& room) {
    const int64_t d = d_;
    if (c.needs(dx_)) steps_.scatter(c, dgate_, 3 * d, c[dx_].template mutable_data<T>());
    if (c.needs(dh0_)) {
      T* to = c[dh0_].template mutable_data<T>();
      std::fill(to, to + c[dh0_].numel(), T{0});
      steps_.scatter_first(c, dfirst_, d, to);
    }
    if (c.needs(dbias_)) {
      T* to = c[dbias_].template mutable_data<T>();
      std::fill(to, to + 3 * d, T{0});
      add_columns(c, dgate_, rows_, 3 * d, to);
    }
    if (!c.needs(dweight_)) return;
    T *before = room.get<T>(rows_ * d), *to = c[dweight_].template mutable_data<T>();
    steps_.previous(c, c[states_].data<T>(), first_, d, before);
    step_.backward_weight(c, rows_, d, before, c[reset_].data<T>(), dgate_, to);
  }

  In x_, h0_, weight_, gate_, reset_, states_, dhidden_;
  Out dx_, dh0_, dweight_, dbias_;
  bool reverse_;
  loops::GruRule rule_;
  GruStep<T> step_;
  int64_t d_ = 0, rows_ = 0;
  const T* first_ = nullptr;
  T *dstates_ = nullptr, *dfirst_ = nullptr, *dgate_ = nullptr;
  Steps steps_;
  std::shared_ptr<GruPanels> panels_ = std::make_shared<GruPanels>();
  std::shared_ptr<Tensor> h0_rows_ = std::make_shared<Tensor>(), dfirst_rows_ = std::make_shared<Tensor>();
};

void attrs(OpDef& def) {
  act_attr(def, "activation", "tanh", "activation of the candidate");
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  def.attr<bool>("is_reverse", false, "processes each sequence from its last row to its first");
  def.attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate");
}

AB_OP(gru)
    .doc(
        "h[t] = (1 - u) h[t-1] + u c with the gates u, r = f(x[t] + h[t-1] W) and the candidate c = g(x[t] + (r "
        "h[t-1]) V), along each sequence.")
    .source("https://arxiv.org/abs/1406.1078")
    .in("Input", "[rows, 3 D] float with LoD: x of the update gate, the reset gate and the candidate")
    .in_optional("H0", "[sequences, D], the state before each sequence; zeros if not given")
    .in("Weight", "[D, 3 D]: the elements of W [D, 2 D], then those of V [D, D]")
    .in_optional("Bias", "[1, 3 D], added to each x")
    .out_intermediate("BatchGate", "[rows, 3 D], gates and candidate in the order of steps")
    .out_intermediate("BatchResetHiddenPrev", "[rows, D], r h[t-1] in the order of steps")
    .out_intermediate("BatchHidden", "[rows, D], h in the order of steps")
    .out("Hidden", "[rows, D], h, with the LoD of Input")
    .with(attrs)
    .flops(recurrent_flops)
    .infer([](InferContext& c) {
      const int64_t d = check_gru(c), rows = c.in("Input").shape[0];
      if (c.runtime()) lod_of(c, "Input");
      check_first(c, "H0", "Input", d);
      const DType dtype = c.in("Input").dtype;
      c.set_out("BatchGate", c.in("Input").shape, dtype);
      for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden"}) {
        c.set_out(slot, Shape{rows, d}, dtype);
      }
      c.share_lod("Hidden", "Input");
    })
    .grad_reads({"Input", "H0", "Weight", "Bias"}, {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return Forward<typename decltype(tag)::type>(op);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_gru_forward<typename decltype(tag)::type>(op);
    });

AB_GRAD(gru)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return Backward<typename decltype(tag)::type>(op);
    })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_gru_backward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::sequence::gru_op
