// Losses of every element alone, from predictions and labels of one shape. A loss is a struct with
//   T value(T x, T y) const         the loss of prediction x and label y
//   T slope(T x, T y) const         its derivative by x
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "opdef/op_def.h"
#include "ops/declare/checks.h"

namespace anabranch::loss {

inline constexpr int64_t kGrain = 4096;
inline constexpr const char* kOnce = "second derivatives of losses are not offered";

struct Names {
  const char *x, *y, *out;
  bool grad_has_lod = false;
};

// make(tag, op) gives the loss for the type of the tag.
template <class Make> void declare_elementwise(OpDef& def, OpDef& grad, const Names& names, Make make) {
  const std::string x = names.x, y = names.y, out = names.out, dx = x + "@GRAD", dout = out + "@GRAD";
  const bool with_lod = names.grad_has_lod;
  def.infer([=](InferContext& c) {
       check_same(c, x, y);
       c.same_as(out, x);
     })
      .grad([=](GradContext& g) {
        g.op(g.forward().type + "_grad").in(x, g.in(x)).in(y, g.in(y)).in(dout, g.dout(out)).out(dx, g.din(x));
      })
      .template cpu<float, double>([=](auto tag, const KernelArgs& op) -> Kernel {
        using T = typename decltype(tag)::type;
        const In a = op.in(x), b = op.in(y);
        const Out o = op.out(out);
        const auto loss = make(tag, op);
        return [=](KernelContext& c) {
          const T *p = c[a].data<T>(), *q = c[b].data<T>();
          T* to = c[o].template mutable_data<T>();
          c.parallel_for(c[a].numel(), kGrain, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = loss.value(p[i], q[i]);
          });
        };
      });
  grad.doc("Gradient of " + def.type() + " by " + x + ".")
      .in(x, "as in the forward op")
      .in(y, "as in the forward op")
      .in(dout, "as " + out)
      .out(dx, "as " + x)
      .infer([=](InferContext& c) {
        check_same(c, x, y);
        check_same(c, x, dout);
        grad_as(c, dx, x, with_lod ? x : "");
      })
      .no_grad(kOnce)
      .template cpu<float, double>([=](auto tag, const KernelArgs& op) -> Kernel {
        using T = typename decltype(tag)::type;
        const In a = op.in(x), b = op.in(y), g = op.in(dout);
        const Out o = op.out(dx);
        const auto loss = make(tag, op);
        return [=](KernelContext& c) {
          if (!c.wants(o)) return;
          const T *p = c[a].data<T>(), *q = c[b].data<T>(), *d = c[g].data<T>();
          T* to = c[o].template mutable_data<T>();
          c.parallel_for(c[a].numel(), kGrain, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = d[i] * loss.slope(p[i], q[i]);
          });
        };
      });
}

// max(x, 0) + log(1 + e^-|x|) = log(1 + e^x) without overflow.
template <class T> T softplus(T x) { return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x))); }

template <class T> T logistic(T x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace anabranch::loss
