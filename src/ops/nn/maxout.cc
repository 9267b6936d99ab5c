#include <algorithm>

#include "ops/declare/declare.h"

namespace anabranch::nn {
namespace {

// Channels in groups that follow each other: [outer, channels / groups, groups, inner].
struct Dims {
  int64_t outer, made, groups, inner;
  Dims(const Shape& x, int axis, int64_t groups_in)
      : outer(x.numel(0, axis)), made(x[axis] / groups_in), groups(groups_in), inner(x.numel(axis + 1, x.rank())) {}
};

int channel_axis(const InferContext& c, const char* slot) {
  check_tensor(c, slot);
  check_rank(c, slot, 4, 4);
  const int axis = normal_axis(c.attr<int32_t>("axis"), 4, "axis");
  AB_CHECK(axis == 1 || axis == 3, InvalidArgument, "{}: axis is {}, expected 1, 3 or -1", op_name(c),
           c.attr<int32_t>("axis"));
  return axis;
}

Shape maxout_shape(const InferContext& c) {
  const int axis = channel_axis(c, "X");
  const int64_t groups = c.attr<int32_t>("groups");
  Shape out = c.in("X").shape;
  AB_CHECK(groups >= 1 && (out[axis] == kUnknown || (out[axis] > 0 && out[axis] % groups == 0)), InvalidArgument,
           "{}: groups is {}, it does not divide the channels of X {}", op_name(c), groups, out.str());
  if (out[axis] != kUnknown) out.set(axis, out[axis] / groups);
  return out;
}

// fn(place in Out, first place in X, step from one channel of the group to the next)
template <class Fn> void each_group(const Dims& d, Fn&& fn) {
  for (int64_t o = 0; o < d.outer * d.made; ++o) {
    for (int64_t k = 0; k < d.inner; ++k) fn(o * d.inner + k, o * d.groups * d.inner + k, d.inner);
  }
}

OpDef& maxout_attrs(OpDef& def) {
  return def.attr<int32_t>("groups", 1, "channels of which the largest number is taken")
      .attr<int32_t>("axis", 1, "axis of the channels");
}

[[maybe_unused]] OpDef& maxout =
    maxout_attrs(declare_op("maxout", __FILE__))
        .doc("The largest number of each group of `groups` neighbouring channels.")
        .source("Goodfellow et al., ICML 2013, arXiv:1302.4389")
        .in("X", "[N, C, H, W] or [N, H, W, C] float")
        .out("Out", "as X with C / groups channels")
        .infer([](InferContext& c) { c.set_out("Out", maxout_shape(c), c.in("X").dtype); })
        .grad([](GradContext& g) {
          g.op("maxout_grad")
              .in("X", g.in("X"))
              .in("Out", g.out("Out"))
              .in("Out@GRAD", g.dout("Out"))
              .out("X@GRAD", g.din("X"));
        })
        .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
          using T = typename decltype(tag)::type;
          const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
          return [=, groups = op.attr<int32_t>("groups"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
            const Dims d(c[x].shape(), axis, groups);
            const T* from = c[x].data<T>();
            T* to = c[out].template mutable_data<T>();
            each_group(d, [=](int64_t o, int64_t first, int64_t step) {
              T best = from[first];
              for (int64_t g = 1; g < d.groups; ++g) {
                const T value = from[first + g * step];
                best = value > best || value != value ? value : best;  // a NaN is the result
              }
              to[o] = best;
            });
          };
        });

[[maybe_unused]] OpDef& maxout_grad =
    maxout_attrs(declare_op("maxout_grad", __FILE__))
        .doc("Out@GRAD goes to the first channel of the group that holds the largest number.")
        .in("X", "as of maxout")
        .in("Out", "from maxout")
        .in("Out@GRAD", "as Out")
        .out("X@GRAD", "as X")
        .infer([](InferContext& c) {
          const Shape out = maxout_shape(c);
          for (const char* slot : {"Out", "Out@GRAD"}) {
            AB_CHECK(compatible(out, c.in(slot).shape), ShapeMismatch, "maxout_grad: {} is {}, expected {}", slot,
                     c.in(slot).shape.str(), out.str());
            check_same_dtype(c, slot, "X");
          }
          grad_as(c, "X@GRAD", "X");
        })
        .no_grad(kNoSecondOrder)
        .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
          using T = typename decltype(tag)::type;
          const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
          return [=, groups = op.attr<int32_t>("groups"), x = op.in("X"), out = op.in("Out"), dout = op.in("Out@GRAD"),
                  dx = op.out("X@GRAD")](KernelContext& c) {
            if (!c.wants(dx)) return;
            const Dims d(c[x].shape(), axis, groups);
            const T *from = c[x].data<T>(), *best = c[out].data<T>(), *g = c[dout].data<T>();
            T* to = c[dx].template mutable_data<T>();
            std::fill(to, to + c[dx].numel(), T{0});
            each_group(d, [=](int64_t o, int64_t first, int64_t step) {
              for (int64_t k = 0; k < d.groups; ++k) {
                if (from[first + k * step] != best[o]) continue;
                to[first + k * step] = g[o];
                return;
              }
            });
          };
        });

}  // namespace
}  // namespace anabranch::nn
