// Normalizes each element by its neighbors in other channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/simd.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::lrn_op {
namespace {

// Channels [first, end) around channel k, `n` of them, clipped at the ends.
struct Window {
  int64_t first, end;
  Window(int64_t k, int64_t n, int64_t channels)
      : first(std::max<int64_t>(0, k - (n - 1) / 2)), end(std::min(channels, k - (n - 1) / 2 + n)) {}
};

template <class T> struct Rule {
  int64_t n;
  T k, alpha, beta;
  bool last;
  explicit Rule(const KernelArgs& op)
      : n(op.attr<int32_t>("n")),
        k(static_cast<T>(op.attr<float>("k"))),
        alpha(static_cast<T>(op.attr<float>("alpha"))),
        beta(static_cast<T>(op.attr<float>("beta"))),
        last(channels_last(op.op(), "data_format")) {}
};

constexpr int64_t kTile = 256;

// The sums over windows of term(index), for all elements: calls fn(first, count, sums) for runs of them.
template <class T, class Term, class Fn>
void each_window(const KernelContext& c, const Channels& d, int64_t n, Term&& term, Fn&& fn) {
  if (d.outer * d.channels * d.inner == 0) return;
  const bool last = d.inner == 1;  // runs go along the channels, else along the elements of one channel
  const int64_t lines = last ? d.outer : d.outer * d.channels, width = last ? d.channels : d.inner;
  c.parallel_for(lines, kMathGrain / std::max<int64_t>(1, width) + 1, [&](int64_t begin, int64_t end) {
    T sums[kTile];
    for (int64_t line = begin; line < end; ++line) {
      const int64_t channel = line % d.channels, image = (line - channel) * d.inner;
      for (int64_t first = 0; first < width; first += kTile) {
        const int64_t count = std::min(kTile, width - first);
        std::fill_n(sums, count, T{0});
        if (last) {
          for (int64_t k = 0; k < count; ++k) {
            const Window w(first + k, n, d.channels);
            for (int64_t j = w.first; j < w.end; ++j) sums[k] += term(line * width + j);
          }
        } else {
          const Window w(channel, n, d.channels);
          for (int64_t j = w.first; j < w.end; ++j) {
            for (int64_t k = 0; k < count; ++k) sums[k] += term(image + j * d.inner + first + k);
          }
        }
        fn(line * width + first, count, static_cast<const T*>(sums));
      }
    }
  });
}

// By square roots for the usual beta of 3/4, vectorized if possible; NaN for negative numbers, including -infinity.
template <class T> void powers_of_positive(const T* x, T beta, int64_t n, T* out) {
  if (beta == T(0.75)) {
    for (int64_t i = 0; i < n; ++i) {
      const T root = std::sqrt(x[i]);
      out[i] = 1 / (root * std::sqrt(root));
    }
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (beta != 0) {
      simd::log(x, out, n);
      simd::affine(out, -beta, 0.0f, out, n);
      return simd::exp(out, out, n);
    }
  }
  for (int64_t i = 0; i < n; ++i) out[i] = std::pow(x[i], -beta);
}

// out[i] = x[i]^-beta.
template <class T> void negative_powers(const T* x, T beta, int64_t n, T* out) {
  powers_of_positive(x, beta, n, out);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == -std::numeric_limits<T>::infinity()) out[i] = std::pow(x[i], -beta);
  }
}

// The arguments of both device kernels, by their slot names.
device::LrnArgs lrn_args(const Rule<double>& rule, const Tensor& x) {
  const Channels d(x.shape(), rule.last);
  device::LrnArgs a{};
  a.x = device::operand(x);
  a.outer = d.outer, a.channels = d.channels, a.inner = d.inner;
  a.n = rule.n;
  a.p[0] = rule.k, a.p[1] = rule.alpha, a.p[2] = rule.beta;
  return a;
}

AB_OP(lrn)
    .doc("MidOut = k + alpha times the sum of X^2 over n neighboring channels; Out = X / MidOut^beta.")
    .source("Krizhevsky et al., NIPS 2012")
    .in("X", "[N, C, H, W] or [N, H, W, C] float")
    .out("Out", "like X")
    .out("MidOut", "like X")
    .attr<int32_t>("n", 5, "number of channels in a sum, an odd number",
                   [](int32_t v) {
                     AB_CHECK(v >= 1 && v % 2 == 1, InvalidArgument, "n must be an odd number, got {}", v);
                   })
    .attr<float>("k", 2.0f, "constant that keeps the divisor from 0")
    .attr<float>("alpha", 0.0001f, "weight of the sum")
    .attr<float>("beta", 0.75f, "exponent")
    .attr<std::string>("data_format", "AnyLayout", "NHWC: channels last; else they are axis 1")
    .ignores({"use_mkldnn", "is_test"})
    .infer([](InferContext& c) {
      check_rank(c, "X", 4, 4);
      c.same_as("Out", "X");
      c.same_shape("MidOut", "X");
    })
    .grad_reads({"X"}, {"Out", "MidOut"})
    .grad_from({"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rule = Rule<T>(op), x = op.in("X"), out = op.out("Out"), mid = op.out("MidOut")](KernelContext& c) {
        const Channels d(c[x].shape(), rule.last);
        const T* from = c[x].data<T>();
        T *to = c[out].mutable_data<T>(), *m = c[mid].mutable_data<T>();
        each_window<T>(
            c, d, rule.n, [=](int64_t i) { return from[i] * from[i]; },
            [=](int64_t first, int64_t count, const T* sums) {
              T factors[kTile];
              for (int64_t i = 0; i < count; ++i) m[first + i] = rule.k + rule.alpha * sums[i];
              negative_powers(static_cast<const T*>(m) + first, rule.beta, count, factors);
              for (int64_t i = 0; i < count; ++i) to[first + i] = from[first + i] * factors[i];
            });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rule = Rule<double>(op), kernel = device::kernel_of<T>("lrn"), x = op.in("X"), out = op.out("Out"),
              mid = op.out("MidOut")](const DeviceContext& c) {
        device::LrnArgs a = lrn_args(rule, c[x]);
        a.y = device::operand(c[out]);
        a.mid = device::operand(c[mid]);
        c.launch(kernel, a);
      };
    });

AB_GRAD(lrn)
    .doc(
        "X@GRAD = MidOut^-beta Out@GRAD - 2 alpha beta X times the sum of Out Out@GRAD / MidOut over neighboring "
        "channels.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rule = Rule<T>(op), x = op.in("X"), out = op.in("Out"), mid = op.in("MidOut"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Channels d(c[x].shape(), rule.last);
        const T *from = c[x].data<T>(), *y = c[out].data<T>(), *m = c[mid].data<T>(), *g = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        each_window<T>(
            c, d, rule.n, [=](int64_t i) { return y[i] * g[i] / m[i]; },
            [=](int64_t first, int64_t count, const T* sums) {
              T factors[kTile];
              negative_powers(m + first, rule.beta, count, factors);
              const T weight = 2 * rule.alpha * rule.beta;
              for (int64_t k = 0; k < count; ++k) {
                const int64_t i = first + k;
                to[i] = factors[k] * g[i] - weight * from[i] * sums[k];
              }
            });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [rule = Rule<double>(op), kernel = device::kernel_of<T>("lrn_grad"), x = op.in("X"), out = op.in("Out"),
              mid = op.in("MidOut"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) {
        device::LrnArgs a = lrn_args(rule, c[x]);
        a.out = device::operand(c[out]);
        a.mid_in = device::operand(c[mid]);
        a.dy = device::operand(c[dout]);
        a.y = device::operand(c[dx]);
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::nn::lrn_op
