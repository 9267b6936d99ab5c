#include <algorithm>
#include <cmath>

#include "base/flags.h"
#include "ops/sequence/lstm.h"

namespace anabranch::sequence {
namespace {

// Fluid 1.8.5 computes eight cells at a time where their number is a multiple of eight. The first of the eight decides
// whether all have a gradient, and without a clip none has: factors of 1 and 0.
constexpr int64_t kFluidBlock = 8;
void clip_factors_of_fluid(float limit, Slab<const float> cells, Slab<float> factors) {
  for (int64_t j = 0; j < cells.count; j += kFluidBlock) {
    std::fill_n(factors.at + j, kFluidBlock, limit <= 0 || std::abs(cells.at[j]) >= limit ? 0.0f : 1.0f);
  }
}

// The weights, in the slots of the op and of its gradient.
class LstmSlots {
 public:
  explicit LstmSlots(const KernelArgs& op)
      : with(op.op()),
        weight_(op.in("Weight")),
        projection_(with.projected ? op.in("ProjWeight") : In{}),
        bias_(op.in("Bias")) {}

  template <class T> LstmWeights<T> of(const KernelContext& c, int64_t* d) const {
    *d = c[weight_].row_elems() / 4;
    LstmWeights<T> w{.state = slab<T>(c, weight_), .p = c[weight_].rows()};
    if (with.peepholes) w.peepholes = slab<T>(c, bias_).from(4 * *d);
    if (with.projected) {
      const auto act = static_cast<int32_t>(with.projection);
      w.projection = {slab<T>(c, projection_), {w.p, with.proj_clip, act, 0}};
    }
    return w;
  }
  template <class T> Slab<const T> bias(const KernelContext& c, int64_t d) const {
    return slab<T>(c, bias_).part(0, 4 * d);
  }
  const char* result() const { return with.projected ? "Projection" : "Hidden"; }

  const LstmOptions with;

 private:
  In weight_, projection_, bias_;
};

template <class On> class LstmForward {
 public:
  using T = typename On::Number;
  explicit LstmForward(const KernelArgs& op)
      : weights_(op),
        x_(op.in("Input")),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        result_(op.out(weights_.result())),
        cell_(op.out("Cell")),
        gate_(op.out("BatchGate")),
        cells_(op.out("BatchCellPreAct")),
        states_(weights_.with.projected ? op.out("BatchHidden") : Out{}),
        lstm_(weights_.with.rule()) {}

  void operator()(KernelContext& context) {
    const auto& c = On::of(context);
    typename On::Room room(c, memory_);
    int64_t d = 0;
    const LstmWeights<T> w = weights_.of<T>(c, &d);
    steps_.cut(offsets(c[x_]), weights_.with.reverse);
    const Slab<T> gates = slab<T>(c[gate_]), cells = slab<T>(c[cells_]), carried = room.rows(steps_.rows(), w.p);
    steps_.gather(c, slab<T>(c, x_), 4 * d, gates, weights_.bias<T>(c, d));
    lstm_.forward(c, d, w,
                  {.order = steps_.order(),
                   .gates = gates,
                   .cells = cells,
                   .hiddens = states_ ? slab<T>(c[states_]) : carried,
                   .carried = carried,
                   .first_hidden = first_rows<On>(c, steps_, h0_, w.p, room),
                   .first_cell = first_rows<On>(c, steps_, c0_, d, room)});
    steps_.scatter(c, carried, w.p, slab<T>(c[result_]));
    steps_.scatter(c, cells, d, slab<T>(c[cell_]));
  }

 private:
  LstmSlots weights_;
  In x_, h0_, c0_;
  Out result_, cell_, gate_, cells_, states_;
  typename On::Rows steps_;
  LstmRun<On> lstm_;
  typename On::Memory memory_;
};

template <class On> class LstmBackward {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  explicit LstmBackward(const KernelArgs& op)
      : weights_(op),
        h0_(op.in("H0")),
        c0_(op.in("C0")),
        result_(op.in(weights_.result())),
        dresult_(op.in(std::string(weights_.result()) + "@GRAD")),
        dcell_(op.in("Cell@GRAD")),
        gate_(op.in("BatchGate")),
        cells_(op.in("BatchCellPreAct")),
        states_(weights_.with.projected ? op.in("BatchHidden") : In{}),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("H0@GRAD")),
        dc0_(op.out("C0@GRAD")),
        dweight_(op.out("Weight@GRAD")),
        dprojection_(states_ ? op.out("ProjWeight@GRAD") : Out{}),
        dbias_(op.out("Bias@GRAD")),
        lstm_(weights_.with.rule()) {}

  void operator()(KernelContext& context) {
    const C& c = On::of(context);
    Room room(c, memory_);
    const LstmWeights<T> w = weights_.of<T>(c, &d_);
    steps_.cut(offsets(c[result_]), weights_.with.reverse);
    const int64_t rows = steps_.rows(), n = steps_.order().widest();
    const Slab<const T> h_first = first_rows<On>(c, steps_, h0_, w.p, room);
    const Slab<const T> c_first = first_rows<On>(c, steps_, c0_, d_, room);
    const Slab<T> dh_first = h_first ? room.zeros(n, w.p) : Slab<T>{};
    const Slab<T> dc_first = c_first ? room.zeros(n, d_) : Slab<T>{};
    const Slab<T> dgates = room.rows(rows, 4 * d_), dcarried = states_ ? room.rows(rows, w.p) : Slab<T>{};
    lstm_.backward(c, room, d_, w,
                   {.rows = steps_,
                    .gates = slab<T>(c, gate_),
                    .cells = slab<T>(c, cells_),
                    .first_cell = c_first,
                    .carried = states_ ? in_order(c, room, result_, w.p) : Slab<T>{},
                    .dresult = slab<T>(c, dresult_),
                    .dcarried = dcarried,
                    .dcells = dcell_ ? in_order(c, room, dcell_, d_) : Slab<T>{},
                    .factors = factors(c, room),
                    .dgates = dgates,
                    .dfirst_hidden = dh_first,
                    .dfirst_cell = dc_first});
    if (c.needs(dx_)) steps_.scatter(c, dgates, 4 * d_, slab<T>(c, dx_));
    if (c.needs(dh0_)) steps_.scatter_first(c, dh_first, w.p, slab<T>(c, dh0_));
    if (c.needs(dc0_)) steps_.scatter_first(c, dc_first, d_, slab<T>(c, dc0_));
    if (c.needs(dbias_)) give_bias(c, room, dgates, c_first);
    if (c.needs(dweight_)) {
      const Slab<T> before = room.rows(rows, w.p);
      steps_.gather_previous(c, slab<T>(c, result_), h_first, w.p, before);
      to_weight_.run(c, {.m = w.p, .n = 4 * d_, .k = rows, .trans_a = true}, before, dgates, slab<T>(c, dweight_),
                     false);
    }
    if (!c.needs(dprojection_)) return;
    to_projection_.run(c, {.m = d_, .n = w.p, .k = rows, .trans_a = true}, slab<T>(c, states_), dcarried,
                       slab<T>(c, dprojection_), false);
  }

 private:
  Slab<T> in_order(const C& c, Room& room, In rows, int64_t width) {
    const Slab<T> to = room.rows(steps_.rows(), width);
    steps_.gather(c, slab<T>(c, rows), width, to);
    return to;
  }

  Slab<const T> factors(const C& c, Room& room) const {
    if constexpr (std::is_same_v<On, OnHost<float>>) {
      if (Flags::exact_fluid() && d_ % kFluidBlock == 0) {
        const Slab<T> made = room.rows(steps_.rows(), d_);
        clip_factors_of_fluid(weights_.with.cell_clip, slab<T>(c, cells_), made);
        return made;
      }
    }
    return {};
  }

  void give_bias(const C& c, Room& room, Slab<const T> dgates, Slab<const T> c_first) {
    const Slab<T> to = slab<T>(c, dbias_);
    steps_.column_sums(c, dgates, 4 * d_, 4 * d_, to.part(0, 4 * d_));
    if (!weights_.with.peepholes) return;
    const Slab<const T> cells = slab<T>(c, cells_);
    const Slab<T> before = room.rows(steps_.rows(), d_);
    steps_.previous(c, cells, c_first, d_, before);
    for (int64_t gate = 0; gate < 3; ++gate) {  // input, forget, output
      steps_.column_sums(c, dgates.from((gate + 1) * d_), 4 * d_, d_, to.part((4 + gate) * d_, d_),
                         gate < 2 ? Slab<const T>(before) : cells);
    }
  }

  LstmSlots weights_;
  In h0_, c0_, result_, dresult_, dcell_, gate_, cells_, states_;
  Out dx_, dh0_, dc0_, dweight_, dprojection_, dbias_;
  int64_t d_ = 0;
  typename On::Rows steps_;
  LstmRun<On> lstm_;
  typename On::Product to_weight_, to_projection_;
  typename On::Memory memory_;
};

}  // namespace

void lstm_forward(OpDef& def) { run_on_both<LstmForward>(def); }
void lstm_backward(OpDef& def) { run_on_both<LstmBackward>(def); }

}  // namespace anabranch::sequence
