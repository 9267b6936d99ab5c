// One step of a gated recurrent unit.
#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {
namespace {

// Activations are numbers here: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
OpDef& unit_attrs(OpDef& def) {
  const auto check = [](int32_t v) {
    AB_CHECK(v >= 0 && v <= 3, InvalidArgument, "activation is {}, expected 0 to 3", v);
  };
  return def.attr<int32_t>("activation", 2, "of the candidate: 0 identity, 1 sigmoid, 2 tanh, 3 relu", check)
      .attr<int32_t>("gate_activation", 1, "of the gates, likewise", check)
      .attr<bool>("origin_mode", false, "the update gate is the share of the old state instead of the candidate's");
}

int64_t check_unit(const InferContext& c) {
  for (const char* slot : {"Input", "HiddenPrev", "Weight"}) {
    check_tensor(c, slot);
    check_rank(c, slot, 2, 2);
    check_same_dtype(c, slot, "Input");
  }
  const Shape &x = c.in("Input").shape, &h = c.in("HiddenPrev").shape, &w = c.in("Weight").shape;
  const int64_t d = h[1], wide = d == kUnknown ? kUnknown : 3 * d;
  AB_CHECK(compatible(x, Shape{h[0], wide}) && compatible(w, Shape{d, wide}), ShapeMismatch,
           "{}: Input is {}, HiddenPrev {}, Weight {}; expected [N, 3 D], [N, D], [D, 3 D]", op_name(c), x.str(),
           h.str(), w.str());
  if (c.has_in("Bias")) {
    check_tensor(c, "Bias");
    check_same_dtype(c, "Bias", "Input");
    check_numel(c, "Bias", wide);
  }
  return d;
}

struct Options {
  Act gate, candidate;
  bool origin;
  explicit Options(const ir::Op& op)
      : gate(static_cast<Act>(op.attr<int32_t>("gate_activation"))),
        candidate(static_cast<Act>(op.attr<int32_t>("activation"))),
        origin(op.attr<bool>("origin_mode")) {}
};

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("Input"), before = op.in("HiddenPrev"), weight = op.in("Weight"), bias = op.in("Bias");
  const Out gate = op.out("Gate"), reset = op.out("ResetHiddenPrev"), hidden = op.out("Hidden");
  const auto by_gates = std::make_shared<Gemm<T>>(), by_candidate = std::make_shared<Gemm<T>>();
  return [=, with = Options(op.op()), part = std::make_shared<Tensor>()](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    const T *from = c[x].data<T>(), *h = c[before].data<T>(), *w = c[weight].data<T>();
    T *g = c[gate].template mutable_data<T>(), *r = c[reset].template mutable_data<T>();
    T *to = c[hidden].template mutable_data<T>(), *sums = sized<T>(part, n, 2 * d);
    by_gates->run(c, {.m = n, .n = 2 * d, .k = d}, h, w, sums);
    each_row(c, n, 3 * d, [&](int64_t k) {
      T* row = g + k * 3 * d;
      std::copy(from + k * 3 * d, from + (k + 1) * 3 * d, row);
      if (bias) add_to(c[bias].template data<T>(), 3 * d, row);
      add_to(sums + k * 2 * d, 2 * d, row);
      activate(with.gate, row, 2 * d);
      for (int64_t j = 0; j < d; ++j) r[k * d + j] = row[d + j] * h[k * d + j];
    });
    by_candidate->run(c, {.m = n, .n = d, .k = d}, r, w + 2 * d * d, sums);
    each_row(c, n, d, [&](int64_t k) {
      T *u = g + k * 3 * d, *candidate = u + 2 * d;
      add_to(sums + k * d, d, candidate);
      activate(with.candidate, candidate, d);
      for (int64_t j = 0; j < d; ++j) {
        const T share = with.origin ? 1 - u[j] : u[j];
        to[k * d + j] = h[k * d + j] - share * h[k * d + j] + share * candidate[j];
      }
    });
  };
}

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : before_(op.in("HiddenPrev")),
        weight_(op.in("Weight")),
        gate_(op.in("Gate")),
        reset_(op.in("ResetHiddenPrev")),
        dhidden_(op.in("Hidden@GRAD")),
        dx_(op.out("Input@GRAD")),
        dbefore_(op.out("HiddenPrev@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dbias_(op.out("Bias@GRAD")),
        with_(op.op()) {}

  void operator()(KernelContext& c) {
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    T *dgate = sized<T>(dgate_rows_, n, 3 * d), *dh = sized<T>(dbefore_rows_, n, d);
    through_gates(c, n, d, dgate, dh);
    if (c.wants(dx_)) std::copy(dgate, dgate + n * 3 * d, c[dx_].template mutable_data<T>());
    if (c.wants(dbefore_)) std::copy(dh, dh + n * d, c[dbefore_].template mutable_data<T>());
    if (c.wants(dbias_)) {
      T* to = c[dbias_].template mutable_data<T>();
      std::fill(to, to + 3 * d, T{0});
      add_columns(dgate, n, 3 * d, to);
    }
    if (!c.wants(dweight_)) return;
    T* to = c[dweight_].template mutable_data<T>();
    to_gates_->run(c, {.m = d, .n = 2 * d, .k = n, .trans_a = true, .ld_b = 3 * d}, c[before_].template data<T>(),
                   dgate, to);
    to_candidate_->run(c, {.m = d, .n = d, .k = n, .trans_a = true, .ld_b = 3 * d}, c[reset_].template data<T>(),
                       dgate + 2 * d, to + 2 * d * d);
  }

 private:
  void through_gates(KernelContext& c, int64_t n, int64_t d, T* dgate, T* dh) {
    const T *gate = c[gate_].template data<T>(), *h = c[before_].template data<T>(),
            *up = c[dhidden_].template data<T>(), *w = c[weight_].template data<T>();
    T* part = sized<T>(part_, n, d);
    each_row(c, n, d, [&](int64_t k) {
      const T* g = gate + k * 3 * d;
      T* to = dgate + k * 3 * d;
      for (int64_t j = 0; j < d; ++j) {
        const T share = with_.origin ? 1 - g[j] : g[j], one = up[k * d + j];
        const T change = one * (g[2 * d + j] - h[k * d + j]);
        to[j] = with_.origin ? -change : change;
        to[2 * d + j] = one * share;
        dh[k * d + j] = one - one * share;
      }
      act_grad(with_.gate, g, to, d);
      act_grad(with_.candidate, g + 2 * d, to + 2 * d, d);
    });
    by_reset_->run(c, {.m = n, .n = d, .k = d, .trans_b = true, .ld_a = 3 * d}, dgate + 2 * d, w + 2 * d * d, part);
    each_row(c, n, d, [&](int64_t k) {
      const T* r = gate + k * 3 * d + d;
      T* to = dgate + k * 3 * d + d;
      for (int64_t j = 0; j < d; ++j) {
        to[j] = part[k * d + j] * h[k * d + j];
        dh[k * d + j] += part[k * d + j] * r[j];
      }
      act_grad(with_.gate, r, to, d);
    });
    by_gates_->run(c, {.m = n, .n = d, .k = 2 * d, .trans_b = true, .ld_a = 3 * d}, dgate, w, part);
    add_to(part, n * d, dh);
  }

  In before_, weight_, gate_, reset_, dhidden_;
  Out dx_, dbefore_, dweight_, dbias_;
  Options with_;
  std::shared_ptr<Tensor> dgate_rows_ = std::make_shared<Tensor>(), dbefore_rows_ = std::make_shared<Tensor>(),
                          part_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_reset_ = std::make_shared<Gemm<T>>(), by_gates_ = std::make_shared<Gemm<T>>(),
                           to_gates_ = std::make_shared<Gemm<T>>(), to_candidate_ = std::make_shared<Gemm<T>>();
};

[[maybe_unused]] OpDef& unit =
    unit_attrs(declare_op("gru_unit", __FILE__))
        .doc("One step of gru for each row: Hidden from HiddenPrev and Input.")
        .in("Input", "[N, 3 D] float: of the update gate, of the reset gate, of the candidate")
        .in("HiddenPrev", "[N, D]")
        .in("Weight", "[D, 3 D], as of gru")
        .in_optional("Bias", "[1, 3 D]")
        .out_intermediate("Gate", "[N, 3 D], gates and candidate")
        .out_intermediate("ResetHiddenPrev", "[N, D], reset gate times HiddenPrev")
        .out("Hidden", "[N, D]")
        .infer([](InferContext& c) {
          const int64_t d = check_unit(c);
          const DType dtype = c.in("Input").dtype;
          c.set_out("Gate", c.in("Input").shape, dtype);
          for (const char* slot : {"ResetHiddenPrev", "Hidden"})
            c.set_out(slot, Shape{c.in("Input").shape[0], d}, dtype);
        })
        .grad([](GradContext& g) {
          auto op = g.op("gru_unit_grad");
          for (const char* slot : {"Input", "HiddenPrev", "Weight", "Bias"}) {
            op.in(slot, g.in(slot)).out(std::string(slot) + "@GRAD", g.din(slot));
          }
          for (const char* slot : {"Gate", "ResetHiddenPrev"}) op.in(slot, g.out(slot));
          op.in("Hidden@GRAD", g.dout("Hidden"));
        })
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& unit_grad = unit_attrs(declare_op("gru_unit_grad", __FILE__))
                                        .doc("Gradients of gru_unit.")
                                        .in("Input", "as of gru_unit")
                                        .in("HiddenPrev", "as of gru_unit")
                                        .in("Weight", "as of gru_unit")
                                        .in_optional("Bias", "as of gru_unit")
                                        .in("Gate", "as of gru_unit")
                                        .in("ResetHiddenPrev", "as of gru_unit")
                                        .in("Hidden@GRAD", "as Hidden")
                                        .out_optional("Input@GRAD", "as Input")
                                        .out_optional("HiddenPrev@GRAD", "as HiddenPrev")
                                        .out_optional("Weight@GRAD", "as Weight")
                                        .out_optional("Bias@GRAD", "as Bias")
                                        .infer([](InferContext& c) {
                                          check_unit(c);
                                          check_same(c, "Gate", "Input");
                                          for (const char* slot : {"ResetHiddenPrev", "Hidden@GRAD"})
                                            check_same(c, slot, "HiddenPrev");
                                          for (const char* slot : {"Input", "HiddenPrev", "Weight", "Bias"}) {
                                            grad_as(c, std::string(slot) + "@GRAD", slot);
                                          }
                                        })
                                        .no_grad(kOnce)
                                        .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
                                          return Backward<typename decltype(tag)::type>(op);
                                        });

}  // namespace
}  // namespace anabranch::sequence
