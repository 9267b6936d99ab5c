#include <utility>

#include "ops/sequence/stacked_lstm.h"

namespace anabranch::sequence {
namespace {

template <class On> class StackedBackward {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  explicit StackedBackward(const KernelArgs& op)
      : op_(op.op()),
        x_(op.in("Input")),
        h0_(op.in("InitH")),
        c0_(op.in("InitC")),
        weights_(op.in("W")),
        reserve_(op.in("Reserve")),
        dout_(op.in("Out@GRAD")),
        dlast_h_(op.in("last_h@GRAD")),
        dlast_c_(op.in("last_c@GRAD")),
        dx_(op.out("Input@GRAD")),
        dh0_(op.out("InitH@GRAD")),
        dc0_(op.out("InitC@GRAD")),
        dweights_(op.out("W@GRAD")),
        dropout_(op) {}

  void operator()(KernelContext& context) {
    const C& c = On::of(context);
    Room room(c, memory_);
    const StackedLstm lstm(op_, c[x_].shape());
    const int64_t rows = lstm.rows(), width = lstm.width(), d = lstm.hidden;
    if (lstm.steps == 0) return without_steps(c, lstm);
    steps_.cut_dense(lstm.steps, lstm.batch);
    dgates_ = room.rows(rows, kGates * d);
    dcells_ = room.rows(rows, d);
    before_ = room.rows(rows, d);
    Slab<T> dgiven = room.rows(rows, width), other = lstm.layers > 1 ? room.rows(rows, width) : Slab<T>{};
    if (dout_) {
      steps_.gather(c, slab<T>(c, dout_), width, dgiven);
    } else {
      On::zero(c, dgiven);
    }
    for (int64_t layer = lstm.layers - 1; layer >= 0; --layer) {
      const bool dropped = layer > 0 && lstm.dropped > 0;
      Slab<const T> from = slab<T>(c, x_);
      if (layer > 0) {
        from = slab<T>(c, reserve_).part(dropped ? lstm.left(layer) : lstm.given(layer - 1), rows * width);
      }
      const Slab<T> dfrom = layer == 0 ? slab<T>(c, dx_) : other;
      for (int64_t way = 0; way < lstm.ways; ++way) run(c, room, lstm, layer, way, from, dgiven, dfrom);
      if (dropped) dropout_.scale(c, slab<T>(c, reserve_).part(lstm.factors(layer), rows * width), dfrom);
      std::swap(dgiven, other);
    }
  }

 private:
  // The last states are the first ones, and the weights are not used.
  void without_steps(const C& c, const StackedLstm& lstm) const {
    if (c.needs(dweights_)) On::zero(c, slab<T>(c, dweights_));
    for (int64_t states = 0; states < lstm.layers * lstm.ways * lstm.batch; states += lstm.batch) {
      if (const Slab<T> dh0 = first(c, lstm, dh0_, states)) add_last(c, lstm, dlast_h_, states, dh0, lstm.hidden);
      if (const Slab<T> dc0 = first(c, lstm, dc0_, states)) add_last(c, lstm, dlast_c_, states, dc0, lstm.hidden);
    }
  }

  void run(const C& c, Room& room, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> from,
           Slab<T> dgiven, Slab<T> dfrom) {
    const int64_t d = lstm.hidden, wide = kGates * d, rows = lstm.rows(), k = lstm.input_of(layer);
    const int64_t states = states_of(lstm, layer, way), last = lstm.row(way, lstm.steps - 1);
    const Slab<const T> w = slab<T>(c, weights_), reserve = slab<T>(c, reserve_);
    const Slab<T> own = dgiven.from(way * d);
    On::zero(c, dcells_);
    add_last(c, lstm, dlast_h_, states, own.from(last * lstm.width()), lstm.width());
    add_last(c, lstm, dlast_c_, states, dcells_.from(last * d), d);
    lstm_.backward(c, room, d, state_weights(lstm, w, layer, way),
                   {.rows = steps_,
                    .backwards = way > 0,
                    .gates = reserve.part(lstm.gates(layer, way), rows * wide),
                    .cells = reserve.part(lstm.cells(layer, way), rows * d),
                    .first_cell = slab<T>(c, c0_).rows(states, lstm.batch, d),
                    .dcarried = own,
                    .row_carried = lstm.width(),
                    .dcells = dcells_,
                    .dgates = dgates_,
                    .dfirst_hidden = first(c, lstm, dh0_, states),
                    .dfirst_cell = first(c, lstm, dc0_, states)});
    if (dfrom) {
      by_input_[layer > 0].run(c, {.m = rows, .n = k, .k = wide}, dgates_, input_weights(lstm, w, layer, way), dfrom,
                               way > 0);
    }
    if (c.needs(dweights_)) weight_gradient(c, lstm, layer, way, from);
  }

  // Missing if it is not requested.
  Slab<T> first(const C& c, const StackedLstm& lstm, Out needed, int64_t states) const {
    const Slab<T> to = slab<T>(c, needed).rows(states, lstm.batch, lstm.hidden);
    if (to) On::zero(c, to);
    return to;
  }

  void add_last(const C& c, const StackedLstm& lstm, In given, int64_t states, Slab<T> to, int64_t row) const {
    const int64_t d = lstm.hidden, n = lstm.batch;
    if (given) blocks_.move(c, n, d, slab<T>(c, given).rows(states, n, d), d, to.part(0, (n - 1) * row + d), row, true);
  }

  void weight_gradient(const C& c, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> from) {
    const int64_t d = lstm.hidden, wide = kGates * d, rows = lstm.rows(), k = lstm.input_of(layer);
    const Slab<T> to = slab<T>(c, dweights_), biases = to.part(lstm.biases(layer, way), 2 * wide);
    of_input_[layer > 0].run(c, {.m = wide, .n = k, .k = rows, .trans_a = true}, dgates_, from,
                             to.part(lstm.weights(layer, way), wide * k), false);
    states_before(c, lstm, layer, way);
    of_state_.run(c, {.m = wide, .n = d, .k = rows, .trans_a = true}, dgates_, before_,
                  to.part(lstm.state_weights(layer, way), wide * d), false);
    for (int64_t which = 0; which < 2; ++which) {
      steps_.column_sums(c, dgates_, wide, wide, biases.rows(which, 1, wide));
    }
  }

  // The previous state of each row, which for the second direction is that of the next step.
  void states_before(const C& c, const StackedLstm& lstm, int64_t layer, int64_t way) {
    const int64_t d = lstm.hidden, n = lstm.batch, rest = lstm.rows() - n, width = lstm.width();
    const Slab<const T> given = slab<T>(c, reserve_).part(lstm.given(layer), lstm.rows() * width).from(way * d);
    const Slab<const T> first = slab<T>(c, h0_).rows(states_of(lstm, layer, way), n, d);
    blocks_.move(c, n, d, first, d, before_.rows(lstm.row(way, 0), n, d), d, false);
    if (rest == 0) return;
    blocks_.move(c, rest, d, given.part(way == 0 ? 0 : n * width, (rest - 1) * width + d), width,
                 before_.rows(way == 0 ? n : 0, rest, d), d, false);
  }

  ir::Op op_;
  In x_, h0_, c0_, weights_, reserve_, dout_, dlast_h_, dlast_c_;
  Out dx_, dh0_, dc0_, dweights_;
  Slab<T> dgates_, dcells_, before_;
  StackedDropout<On> dropout_;
  typename On::Rows steps_;
  LstmRun<On> lstm_{stacked_rule()};
  typename On::Blocks blocks_;
  typename On::Product by_input_[2], of_input_[2], of_state_;  // for the first layer and the others
  typename On::Memory memory_;
};

}  // namespace

void stacked_lstm_backward(OpDef& def) { run_on_both<StackedBackward>(def); }

}  // namespace anabranch::sequence
