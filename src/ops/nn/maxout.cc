// The maximum of a few neighboring channels.
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"

namespace anabranch::nn::maxout_op {
namespace {

// Consecutive groups of channels: [outer, channels / groups, groups, inner].
struct Dims {
  int64_t outer, made, groups, inner;
  Dims(const Shape& x, int axis, int64_t groups_in)
      : outer(x.numel(0, axis)), made(x[axis] / groups_in), groups(groups_in), inner(x.numel(axis + 1, x.rank())) {}
};

void infer(InferContext& c) {
  check_rank(c, "X", 4, 4);
  const int axis = normal_axis(c.attr<int32_t>("axis"), 4, "axis");
  AB_CHECK(axis == 1 || axis == 3, InvalidArgument, "axis must be 1, 3 or -1, got {}", c.attr<int32_t>("axis"));
  const int64_t groups = c.attr<int32_t>("groups");
  Shape out = c.in("X").shape;
  AB_CHECK(groups >= 1 && (out[axis] == kUnknown || (out[axis] > 0 && out[axis] % groups == 0)), InvalidArgument,
           "groups must divide the channels of X {}, got {}", out.str(), groups);
  if (out[axis] != kUnknown) out.set(axis, out[axis] / groups);
  c.set_out("Out", out, c.in("X").dtype);
}

// Calls fn(index in Out, first index in X, step between channels of the group).
template <class Fn> void each_group(const Dims& d, Fn&& fn) {
  for (int64_t o = 0; o < d.outer * d.made; ++o) {
    for (int64_t k = 0; k < d.inner; ++k) fn(o * d.inner + k, o * d.groups * d.inner + k, d.inner);
  }
}

AB_OP(maxout)
    .doc("Out = the maximum of each group of `groups` neighboring channels.")
    .source("Goodfellow et al., ICML 2013, arXiv:1302.4389")
    .in("X", "[N, C, H, W] or [N, H, W, C] float")
    .out("Out", "like X, with C / groups channels")
    .attr<int32_t>("groups", 1, "number of channels of a group")
    .attr<int32_t>("axis", 1, "axis of the channels")
    .infer(infer)
    .grad_reads({"X"}, {"Out"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
      return [=, groups = op.attr<int32_t>("groups"), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Dims d(c[x].shape(), axis, groups);
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        each_group(d, [=](int64_t o, int64_t first, int64_t step) {
          T best = from[first];
          for (int64_t g = 1; g < d.groups; ++g) {
            const T value = from[first + g * step];
            best = value > best || value != value ? value : best;  // NaN propagates
          }
          to[o] = best;
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
      return [=, kernel = device::kernel_of<T>("maxout"), groups = op.attr<int32_t>("groups"), x = op.in("X"),
              out = op.out("Out")](const DeviceContext& c) {
        const Dims d(c[x].shape(), axis, groups);
        c.launch(kernel, device::FoldArgs{
                             device::operand(c[x]), device::operand(c[out]), d.outer * d.made, d.groups, d.inner, {}});
      };
    });

AB_GRAD(maxout)
    .doc("X@GRAD = Out@GRAD at the first channel of the group that holds the maximum, else 0.")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
      return [=, groups = op.attr<int32_t>("groups"), x = op.in("X"), out = op.in("Out"), dout = op.in("Out@GRAD"),
              dx = op.out("X@GRAD")](KernelContext& c) {
        const Dims d(c[x].shape(), axis, groups);
        const T *from = c[x].data<T>(), *best = c[out].data<T>(), *g = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        std::fill(to, to + c[dx].numel(), T{0});
        each_group(d, [=](int64_t o, int64_t first, int64_t step) {
          for (int64_t k = 0; k < d.groups; ++k) {
            if (from[first + k * step] != best[o]) continue;
            to[first + k * step] = g[o];
            return;
          }
        });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const int axis = normal_axis(op.attr<int32_t>("axis"), 4, "axis");
      return [=, kernel = device::kernel_of<T>("maxout_grad"), groups = op.attr<int32_t>("groups"), x = op.in("X"),
              out = op.in("Out"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](const DeviceContext& c) {
        const Dims d(c[x].shape(), axis, groups);
        c.launch(kernel,
                 device::MaxoutGradArgs{device::operand(c[x]), device::operand(c[out]), device::operand(c[dout]),
                                        device::operand(c[dx]), d.outer * d.made, d.groups, d.inner});
      };
    });

}  // namespace
}  // namespace anabranch::nn::maxout_op
