// One step of long short-term memory, without weights.
#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {
namespace {

int64_t check_unit(const InferContext& c) {
  for (const char* slot : {"X", "C_prev"}) {
    check_tensor(c, slot);
    check_rank(c, slot, 2, 2);
  }
  check_same_dtype(c, "X", "C_prev");
  const Shape &x = c.in("X").shape, &cell = c.in("C_prev").shape;
  AB_CHECK(compatible(x, Shape{cell[0], cell[1] == kUnknown ? kUnknown : 4 * cell[1]}), ShapeMismatch,
           "X and C_prev must be [N, 4 D] and [N, D], got {} and {}", x.str(), cell.str());
  return cell[1];
}

// The gates of a row, activated, in [4 D]: input, forget, output, candidate.
template <class T> void gates_of(const T* x, T forget_bias, int64_t d, T* g) {
  std::copy(x, x + 4 * d, g);
  for (int64_t j = d; j < 2 * d; ++j) g[j] += forget_bias;
  activate(Act::kSigmoid, g, 3 * d);
  activate(Act::kTanh, g + 3 * d, d);
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("X"), before = op.in("C_prev");
  const Out cell = op.out("C"), hidden = op.out("H");
  return
      [=, bias = static_cast<T>(op.attr<float>("forget_bias")), gates = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t n = c[before].rows(), d = c[before].row_elems();
        const T *from = c[x].data<T>(), *old = c[before].data<T>();
        T *to = c[cell].template mutable_data<T>(), *h = c[hidden].template mutable_data<T>(),
          *all = sized<T>(gates, n, 4 * d);
        each_row(c, n, 4 * d, [&](int64_t k) {
          T* g = all + k * 4 * d;
          gates_of(from + k * 4 * d, bias, d, g);
          for (int64_t j = 0; j < d; ++j) to[k * d + j] = old[k * d + j] * g[d + j] + g[j] * g[3 * d + j];
          std::copy(to + k * d, to + (k + 1) * d, h + k * d);
          activate(Act::kTanh, h + k * d, d);
          for (int64_t j = 0; j < d; ++j) h[k * d + j] *= g[2 * d + j];
        });
      };
}

template <class T> Kernel backward(const KernelArgs& op) {
  const In x = op.in("X"), before = op.in("C_prev"), cell = op.in("C"), dcell = op.in("C@GRAD"),
           dhidden = op.in("H@GRAD");
  const Out dx = op.out("X@GRAD"), dbefore = op.out("C_prev@GRAD");
  return [=, bias = static_cast<T>(op.attr<float>("forget_bias")), gates = std::make_shared<Tensor>(),
          changes = std::make_shared<Tensor>()](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    const T *from = c[x].data<T>(), *old = c[before].data<T>(), *now = c[cell].data<T>();
    T *to = c.wants(dx) ? c[dx].template mutable_data<T>() : nullptr,
      *dold = c.wants(dbefore) ? c[dbefore].template mutable_data<T>() : nullptr;
    T *all = sized<T>(gates, n, 4 * d), *spare = sized<T>(changes, n, 4 * d);
    each_row(c, n, 4 * d, [&](int64_t k) {
      T *g = all + k * 4 * d, *dg = spare + k * 4 * d;
      gates_of(from + k * 4 * d, bias, d, g);
      for (int64_t j = 0; j < d; ++j) {
        const int64_t at = k * d + j;
        T active = now[at];
        activate(Act::kTanh, &active, 1);
        const T dh = dhidden ? c[dhidden].template data<T>()[at] : T{0};
        const T dc = (dcell ? c[dcell].template data<T>()[at] : T{0}) + dh * g[2 * d + j] * (1 - active * active);
        dg[j] = dc * g[3 * d + j];
        dg[d + j] = dc * old[at];
        dg[2 * d + j] = dh * active;
        dg[3 * d + j] = dc * g[j];
        if (dold) dold[at] = dc * g[d + j];
      }
      act_grad(Act::kSigmoid, g, dg, 3 * d);
      act_grad(Act::kTanh, g + 3 * d, dg + 3 * d, d);
      if (to) std::copy(dg, dg + 4 * d, to + k * 4 * d);
    });
  };
}

AB_OP(lstm_unit)
    .doc("With [i, f, o, g] = X: C = C_prev sigmoid(f + forget_bias) + sigmoid(i) tanh(g), H = sigmoid(o) tanh(C).")
    .in("X", "[N, 4 D] float")
    .in("C_prev", "[N, D]")
    .out("C", "[N, D]")
    .out("H", "[N, D]")
    .attr<float>("forget_bias", 0.0f, "added to f")
    .infer([](InferContext& c) {
      const Shape shape{c.in("X").shape[0], check_unit(c)};
      c.set_out("C", shape, c.in("X").dtype);
      c.set_out("H", shape, c.in("X").dtype);
    })
    .grad_reads({"X", "C_prev"}, {"C"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

AB_GRAD(lstm_unit)
    .in_optional("C@GRAD", "as C; zeros when absent")
    .in_optional("H@GRAD", "as H; zeros when absent")
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch::sequence
