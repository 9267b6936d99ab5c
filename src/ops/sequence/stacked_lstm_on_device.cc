// cudnn_lstm on devices: layers and directions one after another.
#include "ops/device/launch_draw.h"
#include "ops/sequence/queued_stacked_lstm.h"

namespace anabranch::sequence {
namespace {

template <class T> class Forward {
 public:
  explicit Forward(const KernelArgs& op)
      : op_(op.op()),
        x_(op.in("Input")),
        h0_(op.in("InitH")),
        c0_(op.in("InitC")),
        weights_(op.in("W")),
        out_(op.out("Out")),
        last_h_(op.out("last_h")),
        last_c_(op.out("last_c")),
        reserve_(op.out("Reserve")),
        key_(op.random()) {
    key_.repeats = false;  // differs between steps and replicas, even with a given seed
  }

  void operator()(KernelContext& context) {
    const DeviceContext& c = DeviceContext::of(context);
    const StackedLstm lstm(op_, c[x_].shape());
    order_.cut_dense(lstm.steps, lstm.batch);
    const Slab<T> reserve =
        c.needs(reserve_) ? slab<T>(c, reserve_) : room_for<T>(c, own_reserve_, lstm.reserve_count(), 1);
    Slab<const T> from = slab<T>(c, x_);
    for (int64_t layer = 0; layer < lstm.layers; ++layer) {
      if (layer > 0 && lstm.dropped > 0) from = drop(c, lstm, layer, from, reserve);
      for (int64_t way = 0; way < lstm.ways; ++way) run(c, lstm, layer, way, from, reserve);
      from = reserve.part(lstm.given(layer), lstm.rows() * lstm.width());
    }
    blocks_.move(c, lstm.rows(), lstm.width(), from, lstm.width(), slab<T>(c[out_]), lstm.width(), false);
  }

 private:
  // The random numbers of the CPU.
  Slab<const T> drop(const DeviceContext& c, const StackedLstm& lstm, int64_t layer, Slab<const T> from,
                     Slab<T> reserve) const {
    const int64_t n = lstm.rows() * lstm.width();
    const Slab<T> left = reserve.part(lstm.left(layer), n);
    device::DrawArgs a = device::draw_args(key_, c, c[out_]);
    a.x = from.in();
    a.y = left.out();
    a.mask = reserve.part(lstm.factors(layer), n).out();
    a.n = n;
    a.p[0] = lstm.dropped;
    a.p[1] = lstm.dropped < 1 ? T{1} / (T{1} - static_cast<T>(lstm.dropped)) : T{0};
    a.p[2] = static_cast<double>((layer - 1) * n);
    c.launch(drop_, a);
    return left;
  }

  void run(const DeviceContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> from,
           Slab<T> reserve) {
    const int64_t d = lstm.hidden, wide = kGates * d, rows = lstm.rows(), width = lstm.width();
    const Slab<T> gates = reserve.part(lstm.gates(layer, way), rows * wide);
    const Slab<T> cells = reserve.part(lstm.cells(layer, way), rows * d);
    const Slab<T> given = reserve.part(lstm.given(layer), rows * width).from(way * d);
    const Slab<const T> w = slab<T>(c, weights_), biases = w.part(lstm.biases(layer, way), 2 * wide);
    blocks_.move(c, rows, wide, biases.part(0, wide), 0, gates, wide, false);
    blocks_.move(c, rows, wide, biases.from(wide), 0, gates, wide, true);
    by_input_[layer > 0].run(c, {.m = rows, .n = wide, .k = lstm.input_of(layer), .trans_b = true}, from,
                             input_weights(lstm, w, layer, way), gates, true);
    const int64_t states = states_of(lstm, layer, way);
    lstm_.forward(c, d, state_weights(lstm, w, layer, way),
                  {.order = order_,
                   .backwards = way > 0,
                   .gates = gates,
                   .cells = cells,
                   .hiddens = given,
                   .carried = given,
                   .row_hidden = width,
                   .first_hidden = slab<T>(c, h0_).rows(states, lstm.batch, d),
                   .first_cell = slab<T>(c, c0_).rows(states, lstm.batch, d)});
    keep_last(c, lstm, layer, way, given, width, last_h_);
    keep_last(c, lstm, layer, way, cells, d, last_c_);
  }

  void keep_last(const DeviceContext& c, const StackedLstm& lstm, int64_t layer, int64_t way, Slab<const T> rows,
                 int64_t row, Out slot) const {
    if (!c.needs(slot)) return;
    const int64_t d = lstm.hidden, at = lstm.row(way, lstm.steps - 1);
    blocks_.move(c, lstm.batch, d, rows.part(at * row, (lstm.batch - 1) * row + d), row,
                 slab<T>(c, slot).rows(states_of(lstm, layer, way), lstm.batch, d), d, false);
  }

  ir::Op op_;
  In x_, h0_, c0_, weights_;
  Out out_, last_h_, last_c_, reserve_;
  RandomKey key_;
  ab_kernel drop_ = device::kernel_of<T>("draw/factors");
  Steps order_;
  QueuedLstm<T> lstm_{stacked_rule()};
  QueuedBlocks<T> blocks_;
  device::PartGemm<T> by_input_[2];  // for the first layer and the others, whose inputs have another width
  device::Scratch own_reserve_;
};

}  // namespace

template <class T> Kernel queued_stacked_lstm(const KernelArgs& op) { return Forward<T>(op); }
template Kernel queued_stacked_lstm<float>(const KernelArgs&);
template Kernel queued_stacked_lstm<double>(const KernelArgs&);

}  // namespace anabranch::sequence
