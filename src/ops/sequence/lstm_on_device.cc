// lstm and lstmp on devices, with their gradients.
#include <algorithm>

#include "ops/sequence/lstm.h"
#include "ops/sequence/queued_lstm.h"

namespace anabranch::sequence {
namespace {

device::LstmRule rule_of(const LstmOptions& with) {
  const auto number = [](Act act) { return static_cast<int32_t>(act); };
  device::LstmRule rule{};
  rule.clip = with.cell_clip;
  for (int32_t gate = 0; gate < 4; ++gate) rule.places[gate] = gate;
  rule.candidate = number(with.candidate);
  rule.gate = number(with.gate);
  rule.cell = number(with.cell);
  return rule;
}

// The weights, in the slots of the op and of its gradient.
class Weights {
 public:
  explicit Weights(const KernelArgs& op)
      : with(op.op()),
        weight_(op.in("Weight")),
        projection_(with.projected ? op.in("ProjWeight") : In{}),
        bias_(op.in("Bias")) {}

  template <class T> LstmWeights<T> of(const KernelContext& c, int64_t* d) const {
    *d = c[weight_].row_elems() / 4;
    LstmWeights<T> w{.state = slab<T>(c, weight_), .p = c[weight_].rows()};
    if (with.peepholes) w.peepholes = slab<T>(c, bias_).from(4 * *d);
    if (with.projected) w.projection = {slab<T>(c, projection_), with.projection, with.proj_clip};
    return w;
  }
  template <class T> Slab<const T> bias(const KernelContext& c, int64_t d) const {
    return slab<T>(c, bias_).part(0, 4 * d);
  }

  const LstmOptions with;

 private:
  In weight_, projection_, bias_;
};

template <class T> class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : weights_(op),
        x_(op.in("Input")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        result_(op.out(projected() ? "Projection" : "Hidden")),
        cell_(op.out("Cell")),
        gate_(op.out("BatchGate")),
        cells_(op.out("BatchCellPreAct")),
        states_(projected() ? op.out("BatchHidden") : Out{}),
        lstm_(rule_of(weights_.with)) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    int64_t d = 0;
    const LstmWeights<T> w = weights_.of<T>(c, &d);
    steps_.cut(offsets(c[x_]), weights_.with.reverse);
    const Slab<T> gates = slab<T>(c[gate_]), cells = slab<T>(c[cells_]);
    const Slab<T> carried = room_for<T>(c, carried_, steps_.rows(), w.p);
    steps_.gather(c, slab<T>(c, x_), 4 * d, gates, weights_.bias<T>(c, d));
    lstm_.forward(c, d, w,
                  {.order = steps_.order(),
                   .gates = gates,
                   .cells = cells,
                   .hiddens = projected() ? slab<T>(c[states_]) : carried,
                   .carried = carried,
                   .first_hidden = steps_.first(c, h0_, w.p, h0_rows_),
                   .first_cell = steps_.first(c, c0_, d, c0_rows_)});
    steps_.scatter(c, carried, w.p, slab<T>(c[result_]));
    steps_.scatter(c, cells, d, slab<T>(c[cell_]));
  }

 private:
  bool projected() const { return weights_.with.projected; }

  Weights weights_;
  In x_, h0_, c0_;
  Out result_, cell_, gate_, cells_, states_;
  QueuedSteps<T> steps_;
  QueuedLstm<T> lstm_;
  device::Scratch carried_, h0_rows_, c0_rows_;
};

template <class T> class Backward {
 public:
  explicit Backward(const KernelArgs& op)
      : weights_(op),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        result_(op.in(name())),
        dresult_(op.in(std::string(name()) + "@GRAD")),
        dcell_(op.in("Cell@GRAD")),
        gate_(op.in("BatchGate")),
        cells_(op.in("BatchCellPreAct")),
        states_(projected() ? op.in("BatchHidden") : In{}),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dprojection_(projected() ? op.out("ProjWeight@GRAD") : Out{}),
        dbias_(op.out("Bias@GRAD")),
        lstm_(rule_of(weights_.with)) {}

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    w_ = weights_.of<T>(c, &d_);
    steps_.cut(offsets(c[result_]), weights_.with.reverse);
    const int64_t rows = steps_.rows();
    h_first_ = steps_.first(c, h0_, w_.p, h0_rows_);
    c_first_ = steps_.first(c, c0_, d_, c0_rows_);
    dgates_ = room_for<T>(c, dgate_rows_, rows, 4 * d_);
    before_ = room_for<T>(c, before_rows_, rows, std::max(w_.p, d_));
    dcarried_ = room_for<T>(c, dcarried_rows_, rows, w_.p);
    steps_.gather(c, slab<T>(c, dresult_), w_.p, dcarried_);
    dh_first_ = h_first_ ? zeros(c, dh0_rows_, w_.p) : Slab<T>{};
    dc_first_ = c_first_ ? zeros(c, dc0_rows_, d_) : Slab<T>{};
    lstm_.backward(c, d_, w_,
                   {.order = steps_.order(),
                    .gates = slab<T>(c, gate_),
                    .cells = slab<T>(c, cells_),
                    .first_cell = c_first_,
                    .carried = projected() ? carried(c) : Slab<const T>{},
                    .dcarried = dcarried_,
                    .dcells = given_cells(c),
                    .dgates = dgates_,
                    .dfirst_hidden = dh_first_,
                    .dfirst_cell = dc_first_});
    give(c);
  }

 private:
  bool projected() const { return weights_.with.projected; }
  const char* name() const { return projected() ? "Projection" : "Hidden"; }

  Slab<T> zeros(const DeviceContext& c, device::Scratch& memory, int64_t width) {
    const Slab<T> to = room_for<T>(c, memory, steps_.order().widest(), width);
    fill_zero(c, to);
    return to;
  }
  Slab<const T> carried(const DeviceContext& c) {
    steps_.gather(c, slab<T>(c, result_), w_.p, before_.part(0, steps_.rows() * w_.p));
    return before_;
  }
  // Zeros if there is none.
  Slab<T> given_cells(const DeviceContext& c) {
    const Slab<T> to = room_for<T>(c, dcell_rows_, steps_.rows(), d_);
    if (dcell_) {
      steps_.gather(c, slab<T>(c, dcell_), d_, to);
    } else {
      fill_zero(c, to);
    }
    return to;
  }

  void give(const DeviceContext& c) {
    if (c.needs(dx_)) steps_.scatter(c, dgates_, 4 * d_, slab<T>(c, dx_));
    give_first(c, dh_first_, w_.p, dh0_);
    give_first(c, dc_first_, d_, dc0_);
    if (c.needs(dbias_)) give_bias(c, slab<T>(c, dbias_));
    if (c.needs(dweight_)) {
      const Slab<T> before = before_.part(0, steps_.rows() * w_.p);
      steps_.gather_previous(c, slab<T>(c, result_), h_first_, w_.p, before);
      to_weight_.run(c, {.m = w_.p, .n = 4 * d_, .k = steps_.rows(), .trans_a = true}, before, dgates_,
                     slab<T>(c, dweight_), false);
    }
    if (!c.needs(dprojection_)) return;
    to_projection_.run(c, {.m = d_, .n = w_.p, .k = steps_.rows(), .trans_a = true}, slab<T>(c, states_), dcarried_,
                       slab<T>(c, dprojection_), false);
  }

  void give_first(const DeviceContext& c, Slab<T> made, int64_t width, Out to) {
    if (c.needs(to)) steps_.scatter_first(c, made, width, slab<T>(c, to));
  }

  void give_bias(const DeviceContext& c, Slab<T> to) {
    steps_.column_sums(c, dgates_, 4 * d_, 4 * d_, to.part(0, 4 * d_));
    if (!weights_.with.peepholes) return;
    const Slab<const T> cells = slab<T>(c, cells_);
    const Slab<T> before = before_.part(0, steps_.rows() * d_);
    steps_.previous(c, cells, c_first_, d_, before);
    for (int64_t gate = 0; gate < 3; ++gate) {  // input, forget, output
      steps_.column_sums(c, dgates_.from((gate + 1) * d_), 4 * d_, d_, to.part((4 + gate) * d_, d_),
                         gate < 2 ? Slab<const T>(before) : cells);
    }
  }

  Weights weights_;
  In h0_, c0_, result_, dresult_, dcell_, gate_, cells_, states_;
  Out dx_, dh0_, dc0_, dweight_, dprojection_, dbias_;
  int64_t d_ = 0;
  LstmWeights<T> w_;
  Slab<const T> h_first_, c_first_;
  Slab<T> dgates_, dcarried_, dh_first_, dc_first_, before_;  // before_ is used by one after another
  QueuedSteps<T> steps_;
  QueuedLstm<T> lstm_;
  device::PartGemm<T> to_weight_, to_projection_;
  device::Scratch dgate_rows_, dcarried_rows_, dcell_rows_, before_rows_, h0_rows_, c0_rows_, dh0_rows_, dc0_rows_;
};

}  // namespace

template <class T> Kernel queued_lstm_forward(const KernelArgs& op) { return Forward<T>(op); }
template Kernel queued_lstm_forward<float>(const KernelArgs&);
template Kernel queued_lstm_forward<double>(const KernelArgs&);
template <class T> Kernel queued_lstm_backward(const KernelArgs& op) { return Backward<T>(op); }
template Kernel queued_lstm_backward<float>(const KernelArgs&);
template Kernel queued_lstm_backward<double>(const KernelArgs&);

}  // namespace anabranch::sequence
