// A scale and a bias per channel.
#include <algorithm>

#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/sums.h"
#include "ops/kernels/wide.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::affine_channel_op {
namespace {

constexpr int64_t kGrain = 16384;

// As in Fluid 1.8.5, whose default is AnyLayout; layers always write the layout.
bool is_last(const ir::Op& op) { return op.attr<std::string>("data_layout") != "NCHW"; }

void check_channels(const InferContext& c, std::initializer_list<const char*> slots) {
  check_rank(c, "X", 2, kMaxRank);
  const Shape& x = c.in("X").shape;
  for (const char* slot : slots) {
    check_rank(c, slot, 1, 1);
    check_vector(c, slot, x[is_last(c.op()) ? x.rank() - 1 : 1]);
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"), out = op.out("Out"),
          last = is_last(op.op())](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *b = c[bias].data<T>();
    T* to = c[out].mutable_data<T>();
    const Channels d(c[x].shape(), last);
    c.parallel_for(d.outer * d.channels, kGrain / std::max<int64_t>(1, d.inner) + 1, [=](int64_t begin, int64_t end) {
      in_wide_vectors([=] {
        for (int64_t run = begin; run < end; ++run) {
          const T factor = a[run % d.channels], more = b[run % d.channels];
          for (int64_t i = run * d.inner; i < (run + 1) * d.inner; ++i) to[i] = from[i] * factor + more;
        }
      });
    });
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [x = op.in("X"), scale = op.in("Scale"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
          dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"), last = is_last(op.op())](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *g = c[dout].data<T>();
    T *to = needed<T>(c, dx), *da = zeroed<T>(c, dscale), *db = zeroed<T>(c, dbias);
    const Channels d(c[x].shape(), last);
    c.parallel_for(d.channels, kGrain / std::max<int64_t>(1, d.per_channel()) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t o = 0; o < d.outer; ++o) {
        const int64_t at = (o * d.channels + begin) * d.inner, inner = d.inner, count = end - begin;
        const T *x = from + at, *up = g + at;
        if (da)
          add_in_order(count, inner, da + begin,
                       [=](int64_t k, int64_t i) { return up[k * inner + i] * x[k * inner + i]; });
        if (db) add_in_order(count, inner, db + begin, [=](int64_t k, int64_t i) { return up[k * inner + i]; });
        if (!to) continue;
        in_wide_vectors([=] {
          for (int64_t k = 0; k < count; ++k) {
            const T factor = a[begin + k];
            for (int64_t i = k * inner; i < (k + 1) * inner; ++i) to[at + i] = up[i] * factor;
          }
        });
      }
    });
  };
};

device::ChannelArgs channel_args(const Tensor& x, const Tensor& scale, bool last) {
  const Channels d(x.shape(), last);
  device::ChannelArgs a{};
  a.x = device::operand(x);
  a.scale = device::operand(scale);
  a.outer = d.outer, a.channels = d.channels, a.inner = d.inner;
  return a;
}

constexpr auto forward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("affine_channel"), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"),
          out = op.out("Out"), last = is_last(op.op())](const DeviceContext& c) {
    device::ChannelArgs a = channel_args(c[x], c[scale], last);
    a.bias = device::operand(c[bias]);
    a.y = device::operand(c[out]);
    c.launch(kernel, a);
  };
};

constexpr auto backward_on_device = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [kernel = device::kernel_of<T>("affine_channel_grad"), x = op.in("X"), scale = op.in("Scale"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"),
          last = is_last(op.op())](const DeviceContext& c) {
    device::ChannelArgs a = channel_args(c[x], c[scale], last);
    a.dy = device::operand(c[dout]);
    if (c.needs(dx)) a.y = device::operand(c[dx]);
    if (c.needs(dscale)) a.dscale = device::operand(c[dscale]);
    if (c.needs(dbias)) a.dbias = device::operand(c[dbias]);
    c.launch(kernel, a);
  };
};

AB_OP(affine_channel)
    .doc("Out = Scale[c] X + Bias[c] for the elements of each channel c.")
    .in("X", "[N, C, ...] with data_layout NCHW, else [N, ..., C]")
    .in("Scale", "[C]")
    .in("Bias", "[C]")
    .out("Out", "like X")
    .attr<std::string>("data_layout", "AnyLayout", "NCHW: channels are axis 1; else they are the last axis",
                       one_of("data_layout", {"NCHW", "NHWC", "AnyLayout"}))
    .infer([](InferContext& c) {
      check_channels(c, {"Scale", "Bias"});
      c.same_as("Out", "X");
    })
    .grad_reads({"X", "Scale"})
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>(forward_on_device);

AB_GRAD(affine_channel)
    .infer([](InferContext& c) {
      check_channels(c, {"Scale"});
      check_same(c, "Out@GRAD", "X");
      grad_as(c, "X@GRAD", "X");
      grad_as(c, "Scale@GRAD", "Scale");
      grad_as(c, "Bias@GRAD", "Scale");
    })
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>(backward_on_device);

}  // namespace
}  // namespace anabranch::nn::affine_channel_op
