// Gated recurrent units over sequences, all sequences of a batch at once, step by step.
#include <algorithm>

#include "ops/kernels/work.h"
#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {
namespace {

// [rows, 3 D]: update gate, reset gate, candidate. Weight holds [D, 2 D] of the gates, then [D, D] of the candidate.
int64_t check_gru(const InferContext& c, const char* wide) {
  check_tensor(c, wide);
  check_rank(c, wide, 2, 2);
  check_tensor(c, "Weight");
  check_rank(c, "Weight", 2, 2);
  check_same_dtype(c, "Weight", wide);
  const Shape &x = c.in(wide).shape, &w = c.in("Weight").shape;
  const int64_t d = w[0];
  AB_CHECK(d == kUnknown || w[1] == kUnknown || w[1] == 3 * d, ShapeMismatch, "{}: Weight is {}, expected [D, 3 D]",
           op_name(c), w.str());
  AB_CHECK(d == kUnknown || x[1] == kUnknown || x[1] == 3 * d, ShapeMismatch, "{}: {} is {}, Weight is {}", op_name(c),
           wide, x.str(), w.str());
  if (c.has_in("Bias")) {
    check_tensor(c, "Bias");
    check_same_dtype(c, "Bias", wide);
    check_numel(c, "Bias", d == kUnknown ? kUnknown : 3 * d);
  }
  return d;
}

struct Options {
  Act gate, candidate;
  bool reverse, origin;
  explicit Options(const ir::Op& op)
      : gate(act_named(op.attr<std::string>("gate_activation"))),
        candidate(act_named(op.attr<std::string>("activation"))),
        reverse(op.attr<bool>("is_reverse")),
        origin(op.attr<bool>("origin_mode")) {}
};

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
        with_(op.op()) {}

  void operator()(KernelContext& c) {
    d_ = c[weight_].rows();
    steps_.cut(offsets(c[x_]), with_.reverse);
    T* gate = c[gate_].template mutable_data<T>();
    steps_.gather(c, c[x_].data<T>(), 3 * d_, gate);
    if (bias_)
      each_row(c, c[x_].rows(), 3 * d_, [&](int64_t r) { add_to(c[bias_].data<T>(), 3 * d_, gate + r * 3 * d_); });
    const T* before = nullptr;
    if (h0_) {
      T* first = sized<T>(first_, steps_.widest(), d_);
      steps_.gather_first(c, c[h0_].data<T>(), d_, first);
      before = first;
    }
    T* states = c[states_].template mutable_data<T>();
    for (int64_t t = 0; t < steps_.count(); ++t) {
      step(c, t, before);
      before = states + steps_.begin(t) * d_;
    }
    steps_.scatter(c, states, d_, c[hidden_].template mutable_data<T>());
  }

 private:
  void step(KernelContext& c, int64_t t, const T* before) {
    const int64_t n = steps_.rows(t), at = steps_.begin(t), d = d_;
    T* gate = c[gate_].template mutable_data<T>() + at * 3 * d;
    T* reset = c[reset_].template mutable_data<T>() + at * d;
    T* state = c[states_].template mutable_data<T>() + at * d;
    const T* weight = c[weight_].data<T>();
    T* part = sized<T>(part_, n, 2 * d);
    if (before) by_gates_->run(c, {.m = n, .n = 2 * d, .k = d}, before, weight, part);
    each_row(c, n, 2 * d, [&](int64_t k) {
      T* g = gate + k * 3 * d;
      if (before) add_to(part + k * 2 * d, 2 * d, g);
      activate(with_.gate, g, 2 * d);
      for (int64_t j = 0; j < d; ++j) reset[k * d + j] = before ? g[d + j] * before[k * d + j] : T{0};
    });
    if (before) by_candidate_->run(c, {.m = n, .n = d, .k = d}, reset, weight + 2 * d * d, part);
    each_row(c, n, d, [&](int64_t k) {
      T *g = gate + k * 3 * d, *candidate = g + 2 * d;
      if (before) add_to(part + k * d, d, candidate);
      activate(with_.candidate, candidate, d);
      for (int64_t j = 0; j < d; ++j) {
        const T old = before ? before[k * d + j] : T{0}, u = with_.origin ? 1 - g[j] : g[j];
        state[k * d + j] = old - u * old + u * candidate[j];
      }
    });
  }

  In x_, h0_, weight_, bias_;
  Out gate_, reset_, states_, hidden_;
  Options with_;
  int64_t d_ = 0;
  Steps steps_;
  std::shared_ptr<Tensor> first_ = std::make_shared<Tensor>(), part_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_gates_ = std::make_shared<Gemm<T>>(), by_candidate_ = std::make_shared<Gemm<T>>();
};

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : h0_(op.in("H0")),
        weight_(op.in("Weight")),
        gate_(op.in("BatchGate")),
        reset_(op.in("BatchResetHiddenPrev")),
        states_(op.in("BatchHidden")),
        hidden_(op.in("Hidden")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        with_(op.op()) {}

  void operator()(KernelContext& c) {
    d_ = c[weight_].rows();
    rows_ = c[hidden_].rows();
    steps_.cut(offsets(c[hidden_]), with_.reverse);
    first_ = nullptr;
    if (h0_) {
      T* first = sized<T>(h0_rows_, steps_.widest(), d_);
      steps_.gather_first(c, c[h0_].data<T>(), d_, first);
      first_ = first;
    }
    dstates_ = sized<T>(dstate_rows_, rows_, d_);
    steps_.gather(c, c[dhidden_].data<T>(), d_, dstates_);
    dfirst_ = sized<T>(dfirst_rows_, steps_.widest(), d_);
    std::fill(dfirst_, dfirst_ + steps_.widest() * d_, T{0});
    dgate_ = sized<T>(dgate_rows_, rows_, 3 * d_);
    for (int64_t t = steps_.count() - 1; t >= 0; --t) step(c, t);
    give(c);
  }

 private:
  void step(KernelContext& c, int64_t t) {
    const int64_t n = steps_.rows(t), at = steps_.begin(t), d = d_;
    const T* before = t > 0 ? c[states_].data<T>() + steps_.begin(t - 1) * d : first_;
    T* dbefore = t > 0 ? dstates_ + steps_.begin(t - 1) * d : dfirst_;
    const T *gate = c[gate_].data<T>() + at * 3 * d, *dstate = dstates_ + at * d, *weight = c[weight_].data<T>();
    T *dgate = dgate_ + at * 3 * d, *part = sized<T>(part_, n, d);
    each_row(c, n, d, [&](int64_t k) {
      const T *g = gate + k * 3 * d, *up = dstate + k * d;
      T* to = dgate + k * 3 * d;
      for (int64_t j = 0; j < d; ++j) {
        const T old = before ? before[k * d + j] : T{0}, u = with_.origin ? 1 - g[j] : g[j];
        const T du = up[j] * (g[2 * d + j] - old);
        to[j] = with_.origin ? -du : du;
        to[2 * d + j] = up[j] * u;
        dbefore[k * d + j] += up[j] - up[j] * u;
      }
      act_grad(with_.gate, g, to, d);
      act_grad(with_.candidate, g + 2 * d, to + 2 * d, d);
    });
    if (!before) {
      each_row(c, n, d, [&](int64_t k) { std::fill_n(dgate + k * 3 * d + d, d, T{0}); });
      return;
    }
    by_reset_->run(c, {.m = n, .n = d, .k = d, .trans_b = true, .ld_a = 3 * d}, dgate + 2 * d, weight + 2 * d * d,
                   part);
    each_row(c, n, d, [&](int64_t k) {
      const T* r = gate + k * 3 * d + d;
      T* to = dgate + k * 3 * d + d;
      for (int64_t j = 0; j < d; ++j) {
        to[j] = part[k * d + j] * before[k * d + j];
        dbefore[k * d + j] += part[k * d + j] * r[j];
      }
      act_grad(with_.gate, r, to, d);
    });
    by_gates_->run(c, {.m = n, .n = d, .k = 2 * d, .trans_b = true, .ld_a = 3 * d}, dgate, weight, part);
    add_to(part, n * d, dbefore);
  }

  void give(KernelContext& c) {
    const int64_t d = d_;
    if (c.wants(dx_)) steps_.scatter(c, dgate_, 3 * d, c[dx_].template mutable_data<T>());
    if (c.wants(dh0_)) {
      T* to = c[dh0_].template mutable_data<T>();
      std::fill(to, to + c[dh0_].numel(), T{0});
      steps_.scatter_first(c, dfirst_, d, to);
    }
    if (c.wants(dbias_)) {
      T* to = c[dbias_].template mutable_data<T>();
      std::fill(to, to + 3 * d, T{0});
      add_columns(dgate_, rows_, 3 * d, to);
    }
    if (!c.wants(dweight_)) return;
    T *before = sized<T>(before_rows_, rows_, d), *to = c[dweight_].template mutable_data<T>();
    steps_.previous(c[states_].data<T>(), first_, d, before);
    to_gates_->run(c, {.m = d, .n = 2 * d, .k = rows_, .trans_a = true, .ld_b = 3 * d}, before, dgate_, to);
    to_candidate_->run(c, {.m = d, .n = d, .k = rows_, .trans_a = true, .ld_b = 3 * d}, c[reset_].data<T>(),
                       dgate_ + 2 * d, to + 2 * d * d);
  }

  In h0_, weight_, gate_, reset_, states_, hidden_, dhidden_;
  Out dx_, dh0_, dweight_, dbias_;
  Options with_;
  int64_t d_ = 0, rows_ = 0;
  const T* first_ = nullptr;
  T *dstates_ = nullptr, *dfirst_ = nullptr, *dgate_ = nullptr;
  Steps steps_;
  std::shared_ptr<Tensor> h0_rows_ = std::make_shared<Tensor>(), dstate_rows_ = std::make_shared<Tensor>(),
                          dfirst_rows_ = std::make_shared<Tensor>(), dgate_rows_ = std::make_shared<Tensor>(),
                          part_ = std::make_shared<Tensor>(), before_rows_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_reset_ = std::make_shared<Gemm<T>>(), by_gates_ = std::make_shared<Gemm<T>>(),
                           to_gates_ = std::make_shared<Gemm<T>>(), to_candidate_ = std::make_shared<Gemm<T>>();
};

OpDef& gru_attrs(OpDef& def) {
  act_attr(def, "activation", "tanh", "of the candidate");
  return act_attr(def, "gate_activation", "sigmoid", "of the gates")
      .attr<bool>("is_reverse", false, "from the last row of each sequence to the first")
      .attr<bool>("origin_mode", false, "the update gate is the share of the old state instead of the candidate's");
}

[[maybe_unused]] OpDef& gru =
    gru_attrs(declare_op("gru", __FILE__))
        .flops(recurrent_flops)
        .doc(
            "h[t] = (1 - u) h[t-1] + u c with the gates u, r = f(x[t] + h[t-1] W) and the candidate c = g(x[t] + "
            "(r h[t-1]) V), along each sequence.")
        .source("https://arxiv.org/abs/1406.1078")
        .in("Input", "[rows, 3 D] float with sequences: x of the update gate, of the reset gate, of the candidate")
        .in_optional("H0", "[sequences, D], the state before each sequence; zeros when absent")
        .in("Weight", "[D, 3 D]: the elements of W [D, 2 D], then those of V [D, D]")
        .in_optional("Bias", "[1, 3 D], added to each x")
        .out_intermediate("BatchGate", "[rows, 3 D], gates and candidate in the order of steps")
        .out_intermediate("BatchResetHiddenPrev", "[rows, D], r h[t-1] in the order of steps")
        .out_intermediate("BatchHidden", "[rows, D], h in the order of steps")
        .out("Hidden", "[rows, D], h, with the sequences of Input")
        .infer([](InferContext& c) {
          const int64_t d = check_gru(c, "Input"), rows = c.in("Input").shape[0];
          if (c.runtime()) lod_of(c, "Input");
          check_first(c, "H0", "Input", d);
          const DType dtype = c.in("Input").dtype;
          c.set_out("BatchGate", c.in("Input").shape, dtype);
          for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden"}) {
            c.set_out(slot, Shape{rows, d}, dtype);
          }
          c.share_lod("Hidden", "Input");
        })
        .grad([](GradContext& g) {
          auto op = g.op("gru_grad");
          for (const char* slot : {"Input", "H0", "Weight", "Bias"}) op.in(slot, g.in(slot));
          for (const char* slot : {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"}) {
            op.in(slot, g.out(slot));
          }
          op.in("Hidden@GRAD", g.dout("Hidden"));
          for (const char* slot : {"Input", "H0", "Weight", "Bias"}) op.out(std::string(slot) + "@GRAD", g.din(slot));
        })
        .cpu<float, double>(
            [](auto tag, const KernelArgs& op) -> Kernel { return Forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& gru_grad = gru_attrs(declare_op("gru_grad", __FILE__))
                                       .doc("Gradients of gru.")
                                       .in("Input", "as of gru")
                                       .in_optional("H0", "as of gru")
                                       .in("Weight", "as of gru")
                                       .in_optional("Bias", "as of gru")
                                       .in("BatchGate", "as of gru")
                                       .in("BatchResetHiddenPrev", "as of gru")
                                       .in("BatchHidden", "as of gru")
                                       .in("Hidden", "as of gru, for its sequences")
                                       .in("Hidden@GRAD", "as Hidden")
                                       .out_optional("Input@GRAD", "as Input")
                                       .out_optional("H0@GRAD", "as H0")
                                       .out_optional("Weight@GRAD", "as Weight")
                                       .out_optional("Bias@GRAD", "as Bias")
                                       .infer([](InferContext& c) {
                                         const int64_t d = check_gru(c, "Input");
                                         if (c.runtime()) lod_of(c, "Hidden");
                                         check_first(c, "H0", "Hidden", d);
                                         check_same(c, "BatchGate", "Input");
                                         for (const char* slot : {"BatchResetHiddenPrev", "BatchHidden", "Hidden"}) {
                                           check_same_dtype(c, slot, "Input");
                                           check_shape(c, slot, Shape{c.in("Input").shape[0], d});
                                         }
                                         check_same(c, "Hidden@GRAD", "Hidden");
                                         for (const char* slot : {"Input", "H0", "Weight", "Bias"})
                                           grad_as(c, std::string(slot) + "@GRAD", slot);
                                       })
                                       .no_grad(kOnce)
                                       .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
                                         return Backward<typename decltype(tag)::type>(op);
                                       });

}  // namespace
}  // namespace anabranch::sequence
