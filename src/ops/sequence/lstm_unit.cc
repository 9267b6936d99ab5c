// One step of an LSTM, without weights.
#include <algorithm>

#include "ops/device/args_recurrent.h"
#include "ops/device/zeros.h"
#include "ops/kernels/outputs.h"
#include "ops/sequence/recurrent.h"

namespace anabranch::sequence::lstm_unit_op {
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

// Calls fn(first row, rows) for blocks of rows, each large enough to amortize its loops and small enough for the cache:
// rows may have only a few numbers.
template <class Fn> void each_block(KernelContext& c, int64_t n, int64_t d, Fn&& fn) {
  constexpr int64_t kElements = 4096;
  const int64_t rows = kElements / std::max<int64_t>(1, 4 * d) + 1;
  c.parallel_for((n + rows - 1) / rows, 2, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) fn(k * rows, std::min(rows, n - k * rows));
  });
}

// The gates of a block of rows, activated: [rows, 3 D] of input, forget and output, and [rows, D] of the candidate.
template <class T> struct Gates {
  T *sides, *candidate;
  int64_t rows, d;
  Gates(T* room, int64_t n, int64_t width) : sides(room), candidate(room + n * 3 * width), rows(n), d(width) {}

  void fill(const T* x, T forget_bias) const {
    for (int64_t r = 0; r < rows; ++r, x += 4 * d) {
      T* to = sides + r * 3 * d;
      std::copy_n(x, 3 * d, to);
      for (int64_t j = d; j < 2 * d; ++j) to[j] += forget_bias;
      std::copy_n(x + 3 * d, d, candidate + r * d);
    }
    activate(Act::kSigmoid, sides, rows * 3 * d);
    activate(Act::kTanh, candidate, rows * d);
  }
};

template <class T> Kernel forward(const KernelArgs& op) {
  const In x = op.in("X"), before = op.in("C_prev");
  const Out cell = op.out("C"), hidden = op.out("H");
  return
      [=, bias = static_cast<T>(op.attr<float>("forget_bias")), gates = std::make_shared<Tensor>()](KernelContext& c) {
        const int64_t n = c[before].rows(), d = c[before].row_elems();
        const T *from = c[x].data<T>(), *old = c[before].data<T>();
        T *to = c[cell].template mutable_data<T>(), *h = c[hidden].template mutable_data<T>(),
          *all = sized<T>(gates, n, 4 * d);
        each_block(c, n, d, [&](int64_t first, int64_t rows) {
          const Gates<T> g(all + first * 4 * d, rows, d);
          g.fill(from + first * 4 * d, bias);
          const int64_t at = first * d;
          for (int64_t r = 0; r < rows; ++r) {
            const T *side = g.sides + r * 3 * d, *candidate = g.candidate + r * d, *was = old + at + r * d;
            for (int64_t j = 0; j < d; ++j) to[at + r * d + j] = was[j] * side[d + j] + side[j] * candidate[j];
          }
          std::copy_n(to + at, rows * d, h + at);
          activate(Act::kTanh, h + at, rows * d);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t j = 0; j < d; ++j) h[at + r * d + j] *= g.sides[r * 3 * d + 2 * d + j];
          }
        });
      };
}

template <class T> struct Changes {
  const T *old, *dcell, *dhidden, *active;  // for a block of rows; the second and third may be null
  T* dold;                                  // may be null

  // dg: like g, the gradients of the activated gates.
  void spread(const Gates<T>& g, const Gates<T>& dg) const {
    const int64_t d = g.d;
    for (int64_t r = 0; r < g.rows; ++r) {
      const T *side = g.sides + r * 3 * d, *candidate = g.candidate + r * d;
      T* dside = dg.sides + r * 3 * d;
      for (int64_t j = 0; j < d; ++j) {
        const int64_t at = r * d + j;
        const T dh = dhidden ? dhidden[at] : T{0};
        const T dc = (dcell ? dcell[at] : T{0}) + dh * side[2 * d + j] * (1 - active[at] * active[at]);
        dside[j] = dc * candidate[j];
        dside[d + j] = dc * old[at];
        dside[2 * d + j] = dh * active[at];
        dg.candidate[at] = dc * side[j];
        if (dold) dold[at] = dc * side[d + j];
      }
    }
  }
};

template <class T> Kernel backward(const KernelArgs& op) {
  const In x = op.in("X"), before = op.in("C_prev"), cell = op.in("C"), dcell = op.in("C@GRAD"),
           dhidden = op.in("H@GRAD");
  const Out dx = op.out("X@GRAD"), dbefore = op.out("C_prev@GRAD");
  return [=, bias = static_cast<T>(op.attr<float>("forget_bias")),
          room = std::make_shared<Tensor>()](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    const auto read = [&](In in) { return in ? c[in].template data<T>() : nullptr; };
    const T *from = read(x), *old = read(before), *now = read(cell), *dc = read(dcell), *dh = read(dhidden);
    T *to = needed<T>(c, dx), *dold = needed<T>(c, dbefore), *all = sized<T>(room, n, 9 * d);
    each_block(c, n, d, [&](int64_t first, int64_t rows) {
      const int64_t at = first * d;
      T* own = all + first * 9 * d;
      const Gates<T> g(own, rows, d), dg(own + rows * 4 * d, rows, d);
      T* active = own + rows * 8 * d;
      g.fill(from + first * 4 * d, bias);
      std::copy_n(now + at, rows * d, active);
      activate(Act::kTanh, active, rows * d);
      Changes<T>{old + at, dc ? dc + at : nullptr, dh ? dh + at : nullptr, active, dold ? dold + at : nullptr}.spread(
          g, dg);
      act_grad(Act::kSigmoid, g.sides, dg.sides, rows * 3 * d);
      act_grad(Act::kTanh, g.candidate, dg.candidate, rows * d);
      for (int64_t r = 0; to && r < rows; ++r) {
        T* row = to + (first + r) * 4 * d;
        std::copy_n(dg.sides + r * 3 * d, 3 * d, row);
        std::copy_n(dg.candidate + r * d, d, row + 3 * d);
      }
    });
  };
}

// ---- on devices

template <class T> Kernel queued_forward(const KernelArgs& op) {
  return [kernel = device::kernel_of<T>("lstm_unit"), x = op.in("X"), before = op.in("C_prev"), cell = op.out("C"),
          hidden = op.out("H"), bias = op.attr<float>("forget_bias")](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    DeviceContext::of(c).launch(
        kernel, device::LstmUnitArgs{device::operand(c[x]), device::operand(c[before]), device::operand(c[cell]),
                                     device::operand(c[hidden]), n, d, bias});
  };
}

template <class T> Kernel queued_backward(const KernelArgs& op) {
  return [kernel = device::kernel_of<T>("lstm_unit_grad"), x = op.in("X"), before = op.in("C_prev"), cell = op.in("C"),
          dcell = op.in("C@GRAD"), dhidden = op.in("H@GRAD"), dx = op.out("X@GRAD"), dbefore = op.out("C_prev@GRAD"),
          bias = op.attr<float>("forget_bias")](KernelContext& c) {
    const int64_t n = c[before].rows(), d = c[before].row_elems();
    DeviceContext::of(c).launch(
        kernel,
        device::LstmUnitGradArgs{device::operand(c[x]), device::operand(c[before]), device::operand(c[cell]),
                                 device::given_operand(c, dcell), device::given_operand(c, dhidden),
                                 device::needed_operand(c, dx), device::needed_operand(c, dbefore), n, d, bias});
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
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_forward<typename decltype(tag)::type>(op);
    });

AB_GRAD(lstm_unit)
    .in_optional("C@GRAD", "like C; zeros if not given")
    .in_optional("H@GRAD", "like H; zeros if not given")
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); })
    .device<float, double>([](auto tag, const KernelArgs& op) {
      return queued_backward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::sequence::lstm_unit_op
