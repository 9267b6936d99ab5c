
#include "ops/sequence/stacked_lstm.h"
#include "ops/device/launch_draw.h"
#include "ops/kernels/philox.h"

namespace anabranch::sequence {
namespace {

// The factor of inputs that are not dropped.
template <class T> T kept_of(const StackedLstm& lstm) {
  return lstm.dropped < 1 ? T{1} / (T{1} - static_cast<T>(lstm.dropped)) : T{0};
}

template <class On> class StackedForward {
 public:
  using T = typename On::Number;
  using C = typename On::Context;
  using Room = typename On::Room;
  explicit StackedForward(const KernelArgs& op)
      : op_(op.op()),
        x_(op.in("Input")),
        h0_(op.in("InitH")),
        c0_(op.in("InitC")),
        weights_(op.in("W")),
        out_(op.out("Out")),
        last_h_(op.out("last_h")),
        last_c_(op.out("last_c")),
        reserve_(op.out("Reserve")),
        dropout_(op) {}

  void operator()(KernelContext& context) {
    const C& c = On::of(context);
    Room room(c, memory_);
    const StackedLstm lstm(op_, c[x_].shape());
    order_.cut_dense(lstm.steps, lstm.batch);
    const Slab<T> reserve = c.needs(reserve_) ? slab<T>(c, reserve_) : room.rows(lstm.reserve_count(), 1);
    Slab<const T> from = slab<T>(c, x_);
    for (int64_t layer = 0; layer < lstm.layers; ++layer) {
      if (layer > 0 && lstm.dropped > 0) {
        dropout_.run(c, lstm, layer, from, reserve, c[out_]);
        from = reserve.part(lstm.left(layer), lstm.rows() * lstm.width());
      }
      for (int64_t way = 0; way < lstm.ways; ++way) run(c, lstm, layer, way, from, reserve);
      from = reserve.part(lstm.given(layer), lstm.rows() * lstm.width());
    }
    blocks_.move(c, lstm.rows(), lstm.width(), from, lstm.width(), slab<T>(c[out_]), lstm.width(), false);
  }

 private:
  void run(const C& c, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> from, Slab<T> reserve) {
    const int64_t d = lstm.hidden, wide = kGates * d, rows = lstm.rows(), width = lstm.width();
    const Slab<T> gates = reserve.part(lstm.gates(layer, way), rows * wide);
    const Slab<T> cells = reserve.part(lstm.cells(layer, way), rows * d);
    const Slab<T> given = reserve.part(lstm.given(layer), rows * width).from(way * d);
    const Slab<const T> w = slab<T>(c, weights_), biases = w.part(lstm.biases(layer, way), 2 * wide);
    by_input_[layer > 0].run(c, {.m = rows, .n = wide, .k = lstm.input_of(layer), .trans_b = true}, from,
                             input_weights(lstm, w, layer, way), gates, false);
    for (int64_t which = 0; which < 2; ++which) {
      blocks_.move(c, rows, wide, biases.rows(which, 1, wide), 0, gates, wide, true);
    }
    const int64_t states = states_of(lstm, layer, way);
    const Slab<const T> h0 = slab<T>(c, h0_).rows(states, lstm.batch, d),
                        c0 = slab<T>(c, c0_).rows(states, lstm.batch, d);
    lstm_.forward(c, d, state_weights(lstm, w, layer, way),
                  {.order = order_,
                   .backwards = way > 0,
                   .gates = gates,
                   .cells = cells,
                   .hiddens = given,
                   .carried = given,
                   .row_hidden = width,
                   .first_hidden = h0,
                   .first_cell = c0});
    keep_last(c, lstm, layer, way, given, width, h0, last_h_);
    keep_last(c, lstm, layer, way, cells, d, c0, last_c_);
  }

  // The state after the last step; without steps, the one before the first.
  void keep_last(const C& c, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> rows, int64_t row,
                 Slab<const T> first, Out slot) const {
    if (!c.needs(slot)) return;
    const int64_t d = lstm.hidden, at = lstm.row(way, lstm.steps - 1);
    const bool none = lstm.steps == 0;
    blocks_.move(c, lstm.batch, d, none ? first : rows.part(at * row, (lstm.batch - 1) * row + d), none ? d : row,
                 slab<T>(c, slot).rows(states_of(lstm, layer, way), lstm.batch, d), d, false);
  }

  ir::Op op_;
  In x_, h0_, c0_, weights_;
  Out out_, last_h_, last_c_, reserve_;
  StackedDropout<On> dropout_;
  Steps order_;
  LstmRun<On> lstm_{stacked_rule()};
  typename On::Blocks blocks_;
  typename On::Product by_input_[2];  // for the first layer and the others, whose inputs have another width
  typename On::Memory memory_;
};

}  // namespace

template <class T>
void StackedDropout<OnHost<T>>::run(const KernelContext& c, const StackedLstm& lstm, int64_t layer, Slab<const T> from,
                                    Slab<T> reserve, Tensor&) const {
  T *factors = reserve.at + lstm.factors(layer), *left = reserve.at + lstm.left(layer);
  const int64_t n = lstm.rows() * lstm.width(), drawn = (layer - 1) * n;
  const Philox random(with_step(key_, c));
  const T kept = kept_of<T>(lstm);
  c.parallel_for(n, 8192, [&](int64_t begin, int64_t end) {
    random.each_uniform(drawn + begin, drawn + end, [&](int64_t i, float u) {
      factors[i - drawn] = u >= lstm.dropped ? kept : T{0};
      left[i - drawn] = factors[i - drawn] * from.at[i - drawn];
    });
  });
}

template <class T>
void StackedDropout<OnDevice<T>>::run(const DeviceContext& c, const StackedLstm& lstm, int64_t layer,
                                      Slab<const T> from, Slab<T> reserve, Tensor& out) const {
  const int64_t n = lstm.rows() * lstm.width();
  device::DrawArgs a = device::draw_args(key_, c, out);
  a.x = from.in();
  a.y = reserve.part(lstm.left(layer), n).out();
  a.mask = reserve.part(lstm.factors(layer), n).out();
  a.n = n;
  a.p[0] = lstm.dropped;
  a.p[1] = kept_of<T>(lstm);
  a.p[2] = static_cast<double>((layer - 1) * n);
  c.launch(drop_, a);
}

template <class T>
void StackedDropout<OnDevice<T>>::scale(const DeviceContext& c, Slab<const T> factors, Slab<T> rows) const {
  const Shape shape{rows.count};
  const auto axes = device::axes_of(broadcast_loop(shape, shape, shape, -1));
  c.launch(multiply_, device::BinaryArgs{Slab<const T>(rows).in(), factors.in(), rows.out(), axes, {}});
}

template class StackedDropout<OnHost<float>>;
template class StackedDropout<OnHost<double>>;
template class StackedDropout<OnDevice<float>>;
template class StackedDropout<OnDevice<double>>;

void stacked_lstm_forward(OpDef& def) { run_on_both<StackedForward>(def); }

}  // namespace anabranch::sequence
