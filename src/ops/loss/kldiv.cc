// Kullback-Leibler divergence.
#include <algorithm>
#include <string>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/device/launch_fold.h"
#include "ops/device/launch_loss.h"
#include "ops/device/scratch.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/sums.h"
#include "ops/loss/loss_functions.h"

namespace anabranch::loss::kldiv_op {
namespace {

bool is_reduced(const ir::Op& op) { return op.attr<std::string>("reduction") != "none"; }

// The divisor of the sum of all elements.
template <class T> T divisor(const std::string& reduction, const Tensor& x) {
  if (reduction == "mean") return static_cast<T>(std::max<int64_t>(1, x.numel()));
  return reduction == "batchmean" ? static_cast<T>(std::max<int64_t>(1, x.rows())) : T{1};
}

// out[i] = the term of element i.
void terms(const float* x, const float* target, int64_t n, float* out) {
  simd::log(target, out, n);
  for (int64_t i = 0; i < n; ++i) {
    const float term = target[i] * (out[i] - x[i]);
    out[i] = target[i] <= 0 ? 0.0f : term;
  }
}
void terms(const double* x, const double* target, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = kldiv(x[i], target[i]);
}

// The sum of all terms, in chunks that depend only on n.
template <class T> double total(const KernelContext& c, const T* x, const T* target, int64_t n) {
  constexpr int64_t kTile = 256;
  return parallel_total<double>(c, n, kMathGrain, [=](int64_t begin, int64_t end) {
    T tile[kTile];
    double sum = 0;
    for (int64_t first = begin; first < end; first += kTile) {
      const int64_t count = std::min(kTile, end - first);
      terms(x + first, target + first, count, tile);
      sum += sum_of<double>(count, [&](int64_t i) { return static_cast<double>(tile[i]); });
    }
    return sum;
  });
}

AB_OP(kldiv_loss)
    .doc(
        "Kullback-Leibler divergence of Target from a distribution whose logarithms are X: Target (log Target - X), "
        "and 0 where Target <= 0. The attribute reduction selects whether the elements are returned (none), summed "
        "(sum), averaged "
        "(mean), or summed and divided by the batch size (batchmean).")
    .in("X", "[N, ...] float: logarithms of probabilities")
    .in("Target", "like X: probabilities")
    .out("Loss", "shape of X, or [1] unless reduction is none; dtype of X")
    .attr<std::string>("reduction", "mean", "how elements are combined: none, sum, mean or batchmean",
                       one_of("reduction", {"none", "sum", "mean", "batchmean"}))
    .infer([](InferContext& c) {
      check_same(c, "X", "Target");
      if (is_reduced(c.op())) {
        c.set_out("Loss", Shape{1}, c.in("X").dtype);
      } else {
        c.same_shape("Loss", "X");
      }
    })
    .grad_reads({"X", "Target"})
    .grad_to({"X"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), target = op.in("Target");
      const Out out = op.out("Loss");
      const std::string reduction = op.attr<std::string>("reduction");
      const bool reduced = is_reduced(op.op());
      return [=](KernelContext& c) {
        const T *p = c[x].data<T>(), *q = c[target].data<T>();
        T* to = c[out].mutable_data<T>();
        const int64_t n = c[x].numel();
        if (reduced) {
          *to = static_cast<T>(total(c, p, q, n)) / divisor<T>(reduction, c[x]);
          return;
        }
        c.parallel_for(n, kMathGrain,
                       [=](int64_t begin, int64_t end) { terms(p + begin, q + begin, end - begin, to + begin); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [term = device::kernel_of<T>("kldiv_loss"), sum = device::kernel_of<T>("fold_axes/sum"),
              scale = device::kernel_of<T>("scalar/scale"), scratch = device::Scratch(), x = op.in("X"),
              target = op.in("Target"), out = op.out("Loss"), reduction = op.attr<std::string>("reduction"),
              reduced = is_reduced(op.op())](const DeviceContext& c) mutable {
        Tensor& to = reduced ? scratch.of(c, c[x].shape(), dtype_of<T>) : c[out];
        device::LossArgs a{};
        a.x = device::operand(c[x]);
        a.label = device::operand(c[target]);
        a.y = device::operand(to);
        a.n = c[x].numel();
        c.launch(term, a);
        if (!reduced) return;
        device::launch_fold(c, sum, to, c[out]);
        device::ScalarArgs s{};
        device::put(s, 0, 1 / divisor<device::Compute<T>>(reduction, c[x]));
        device::launch_scalar(c, scale, s, c[out], c[out]);
      };
    });

AB_GRAD(kldiv_loss)
    .doc("X@GRAD = -Target Loss@GRAD where Target is above 0, divided like the loss.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), target = op.in("Target"), dloss = op.in("Loss@GRAD");
      const Out dx = op.out("X@GRAD");
      const std::string reduction = op.attr<std::string>("reduction");
      const bool reduced = is_reduced(op.op());
      return [=](KernelContext& c) {
        const T *q = c[target].data<T>(), *g = c[dloss].data<T>();
        const T over = divisor<T>(reduction, c[x]);
        T* to = c[dx].mutable_data<T>();
        const int64_t step = reduced ? 0 : 1;
        c.parallel_each(c[x].numel(), kCheapGrain, [=](int64_t i) { to[i] = kldiv_slope(q[i], g[i * step], over); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [kernel = device::kernel_of<T>("kldiv_loss_grad"), x = op.in("X"), target = op.in("Target"),
              dloss = op.in("Loss@GRAD"), dx = op.out("X@GRAD"),
              reduction = op.attr<std::string>("reduction")](const DeviceContext& c) {
        device::LossArgs a{};
        a.x = device::operand(c[x]);
        a.label = device::operand(c[target]);
        a.dy = device::operand(c[dloss]);
        a.y = device::operand(c[dx]);
        a.n = c[x].numel();
        a.p[0] = static_cast<double>(divisor<device::Compute<T>>(reduction, c[x]));
        c.launch(kernel, a);
      };
    });

}  // namespace
}  // namespace anabranch::loss::kldiv_op
