// Kullback-Leibler divergence.
#include <algorithm>
#include <cmath>
#include <string>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::loss {
namespace {

bool is_reduced(const ir::Op& op) { return op.attr<std::string>("reduction") != "none"; }

// By what the sum of all elements is divided.
template <class T> T divisor(const std::string& reduction, const Tensor& x) {
  if (reduction == "mean") return static_cast<T>(std::max<int64_t>(1, x.numel()));
  return reduction == "batchmean" ? static_cast<T>(std::max<int64_t>(1, x.rows())) : T{1};
}

AB_OP(kldiv_loss)
    .doc(
        "Kullback-Leibler divergence of Target from a distribution whose logarithms are X: Target (log Target - X), 0 "
        "where Target is not above 0; every element (none), their sum, mean, or sum over the batch size (batchmean).")
    .in("X", "[N, ...] float log probabilities")
    .in("Target", "as X, probabilities")
    .out("Loss", "as X, or [1] when reduced")
    .attr<std::string>("reduction", "mean", "none, sum, mean or batchmean",
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
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In x = op.in("X"), target = op.in("Target");
      const Out out = op.out("Loss");
      const std::string reduction = op.attr<std::string>("reduction");
      const bool reduced = is_reduced(op.op());
      return [=](KernelContext& c) {
        const T *p = c[x].data<T>(), *q = c[target].data<T>();
        T* to = c[out].template mutable_data<T>();
        double sum = 0;
        for (int64_t i = 0, n = c[x].numel(); i < n; ++i) {
          const T value = q[i] <= 0 ? T{0} : q[i] * (std::log(q[i]) - p[i]);
          if (reduced) {
            sum += static_cast<double>(value);
          } else {
            to[i] = value;
          }
        }
        if (reduced) *to = static_cast<T>(sum) / divisor<T>(reduction, c[x]);
      };
    });

AB_GRAD(kldiv_loss)
    .doc("X@GRAD = -Target Loss@GRAD where Target is above 0, divided as the loss is.")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      const In x = op.in("X"), target = op.in("Target"), dloss = op.in("Loss@GRAD");
      const Out dx = op.out("X@GRAD");
      const std::string reduction = op.attr<std::string>("reduction");
      const bool reduced = is_reduced(op.op());
      return [=](KernelContext& c) {
        const T *q = c[target].data<T>(), *g = c[dloss].data<T>();
        const T over = divisor<T>(reduction, c[x]);
        T* to = c[dx].template mutable_data<T>();
        for (int64_t i = 0, n = c[x].numel(); i < n; ++i) {
          to[i] = q[i] <= 0 ? T{0} : -q[i] * (reduced ? *g : g[i]) / over;
        }
      };
    });

}  // namespace
}  // namespace anabranch::loss
