// One step of an LSTM, without weights.
#include "ops/sequence/lstm_run.h"

namespace anabranch::sequence::lstm_unit_op {
namespace {

int64_t check_unit(const InferContext& c) {
  for (const char* slot : {"X", "C_prev"}) check_rank(c, slot, 2, 2);
  check_same_dtype(c, "X", "C_prev");
  const Shape &x = c.in("X").shape, &cell = c.in("C_prev").shape;
  AB_CHECK(compatible(x, Shape{cell[0], cell[1] == kUnknown ? kUnknown : 4 * cell[1]}), ShapeMismatch,
           "X and C_prev must be [N, 4 D] and [N, D], got {} and {}", x.str(), cell.str());
  return cell[1];
}

// Gates in the order of X: input, forget, output, candidate.
device::LstmRule rule_of(const KernelArgs& op) {
  device::LstmRule rule = lstm_rule(Act::kSigmoid, Act::kTanh, Act::kTanh, {3, 0, 1, 2});
  rule.forget_bias = op.attr<float>("forget_bias");
  return rule;
}

// The gates of X, and the cell and the state. The rule gets the number of units.
template <class On> class Gates {
 public:
  using T = typename On::Number;
  explicit Gates(const KernelArgs& op) : x_(op.in("X")), before_(op.in("C_prev")), rule_(rule_of(op)) {}
  Slab<T> fill(const typename On::Context& c, typename On::Room& room, Slab<T> now, Slab<T> hidden) {
    const int64_t n = c[before_].rows(), d = rule_.units = c[before_].row_elems();
    const Slab<T> gates = room.rows(n, 4 * d);
    blocks_.move(c, n, 4 * d, slab<T>(c, x_), 4 * d, gates, 4 * d, false);
    cell_.run(c, {gates.out(), slab<T>(c, before_).in(), {}, now.out(), hidden.out(), n, d, rule_});
    return gates;
  }
  const device::LstmRule& rule() const { return rule_; }

 private:
  In x_, before_;
  device::LstmRule rule_;
  typename On::Blocks blocks_;
  typename On::template Cell<LstmCell> cell_;
};

template <class On> class Forward {
 public:
  using T = typename On::Number;
  explicit Forward(const KernelArgs& op) : gates_(op), cell_(op.out("C")), hidden_(op.out("H")) {}
  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    gates_.fill(c, room, slab<T>(c[cell_]), slab<T>(c[hidden_]));
  }

 private:
  Gates<On> gates_;
  Out cell_, hidden_;
  typename On::Memory memory_;
};

template <class On> class Backward {
 public:
  using T = typename On::Number;
  explicit Backward(const KernelArgs& op)
      : gates_(op),
        before_(op.in("C_prev")),
        cell_(op.in("C")),
        dcell_(op.in("C@GRAD")),
        dhidden_(op.in("H@GRAD")),
        dx_(op.out("X@GRAD")),
        dbefore_(op.out("C_prev@GRAD")) {}
  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    const int64_t n = c[before_].rows(), d = c[before_].row_elems();
    const Slab<const T> gates = gates_.fill(c, room, room.rows(n, d), room.rows(n, d));
    const Slab<T> dx = c.needs(dx_) ? slab<T>(c, dx_) : room.rows(n, 4 * d), dbefore = slab<T>(c, dbefore_);
    if (dbefore) On::zero(c, dbefore);
    back_.run(c, {gates.in(),
                  slab<T>(c, cell_).in(),
                  slab<T>(c, before_).in(),
                  {},
                  slab<T>(c, dhidden_).in(),
                  slab<T>(c, dcell_).in(),
                  {},
                  dx.out(),
                  dbefore.out(),
                  n,
                  d,
                  gates_.rule()});
  }

 private:
  Gates<On> gates_;
  In before_, cell_, dcell_, dhidden_;
  Out dx_, dbefore_;
  typename On::template Cell<LstmCellGrad> back_;
  typename On::Memory memory_;
};

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
    .with(run_on_both<Forward>);

AB_GRAD(lstm_unit)
    .in_optional("C@GRAD", "like C; zeros if not given")
    .in_optional("H@GRAD", "like H; zeros if not given")
    .with(run_on_both<Backward>);

}  // namespace
}  // namespace anabranch::sequence::lstm_unit_op
