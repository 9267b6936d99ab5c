// A scale and a bias per channel.
#include "ops/device/args_rows.h"
#include "ops/device/launch.h"
#include "ops/kernels/outputs.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::affine_channel_op {
namespace {

// fn(channel, first element) for every run of `inner` elements.
template <class Fn> void each_run(const Channels& d, Fn&& fn) {
  for (int64_t o = 0; o < d.outer; ++o) {
    for (int64_t k = 0; k < d.channels; ++k) fn(k, (o * d.channels + k) * d.inner);
  }
}

void check_channels(const InferContext& c, std::initializer_list<const char*> slots) {
  check_tensor(c, "X");
  check_rank(c, "X", 2, kMaxRank);
  const Shape& x = c.in("X").shape;
  for (const char* slot : slots) {
    check_rank(c, slot, 1, 1);
    check_vector(c, slot, x[channels_last(c.op()) ? x.rank() - 1 : 1]);
  }
}

template <class T> Kernel forward(const KernelArgs& op) {
  return [x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"), out = op.out("Out"),
          last = channels_last(op.op())](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *b = c[bias].data<T>();
    T* to = c[out].template mutable_data<T>();
    const Channels d(c[x].shape(), last);
    each_run(d, [&](int64_t k, int64_t at) {
      for (int64_t i = at; i < at + d.inner; ++i) to[i] = from[i] * a[k] + b[k];
    });
  };
}

template <class T> Kernel backward(const KernelArgs& op) {
  return [x = op.in("X"), scale = op.in("Scale"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
          dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"), last = channels_last(op.op())](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *g = c[dout].data<T>();
    T *to = needed<T>(c, dx), *da = zeroed<T>(c, dscale), *db = zeroed<T>(c, dbias);
    const Channels d(c[x].shape(), last);
    each_run(d, [&](int64_t k, int64_t at) {
      for (int64_t i = at; i < at + d.inner; ++i) {
        const T up = g[i];
        if (da) da[k] += up * from[i];
        if (db) db[k] += up;
        if (to) to[i] = up * a[k];
      }
    });
  };
}

device::ChannelArgs channel_args(const Tensor& x, const Tensor& scale, bool last) {
  const Channels d(x.shape(), last);
  device::ChannelArgs a{};
  a.x = device::operand(x);
  a.scale = device::operand(scale);
  a.outer = d.outer, a.channels = d.channels, a.inner = d.inner;
  return a;
}

template <class T> Kernel forward_on_device(const KernelArgs& op) {
  return [kernel = device::kernel_of<T>("affine_channel"), x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"),
          out = op.out("Out"), last = channels_last(op.op())](KernelContext& c) {
    device::ChannelArgs a = channel_args(c[x], c[scale], last);
    a.bias = device::operand(c[bias]);
    a.y = device::operand(c[out]);
    DeviceContext::of(c).launch(kernel, a);
  };
}

template <class T> Kernel backward_on_device(const KernelArgs& op) {
  return [kernel = device::kernel_of<T>("affine_channel_grad"), x = op.in("X"), scale = op.in("Scale"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"),
          last = channels_last(op.op())](KernelContext& c) {
    device::ChannelArgs a = channel_args(c[x], c[scale], last);
    a.dy = device::operand(c[dout]);
    if (c.needs(dx)) a.y = device::operand(c[dx]);
    if (c.needs(dscale)) a.dscale = device::operand(c[dscale]);
    if (c.needs(dbias)) a.dbias = device::operand(c[dbias]);
    DeviceContext::of(c).launch(kernel, a);
  };
}

AB_OP(affine_channel)
    .doc("Out = Scale[c] X + Bias[c] for the elements of each channel c.")
    .in("X", "[N, C, ...], or [N, ..., C] with data_layout NHWC")
    .in("Scale", "[C]")
    .in("Bias", "[C]")
    .out("Out", "like X")
    .with(layout_attr)
    .infer([](InferContext& c) {
      check_channels(c, {"Scale", "Bias"});
      c.same_as("Out", "X");
    })
    .grad_reads({"X", "Scale"})
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) {
      return forward_on_device<typename decltype(tag)::type>(op);
    });

AB_GRAD(affine_channel)
    .infer([](InferContext& c) {
      check_channels(c, {"Scale"});
      check_same(c, "Out@GRAD", "X");
      grad_as(c, "X@GRAD", "X");
      grad_as(c, "Scale@GRAD", "Scale");
      grad_as(c, "Bias@GRAD", "Scale");
    })
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) {
      return backward_on_device<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::nn::affine_channel_op
