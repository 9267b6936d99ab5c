// A scale and a bias for each channel.
#include <algorithm>

#include "ops/declare/declare.h"

namespace anabranch {
namespace {

bool channels_last(const std::string& layout) { return layout == "NHWC"; }

// [outer, channels, inner]
struct Channels {
  int64_t outer, count, inner;
  Channels(const Shape& x, bool last)
      : outer(last ? x.numel(0, x.rank() - 1) : x[0]),
        count(last ? x[x.rank() - 1] : x[1]),
        inner(last ? 1 : x.numel(2, x.rank())) {}
  // fn(channel, first element) for every run of `inner` elements.
  template <class Fn> void each(Fn&& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < count; ++k) fn(k, (o * count + k) * inner);
    }
  }
};

void check_channels(const InferContext& c, std::initializer_list<const char*> slots) {
  check_tensor(c, "X");
  check_rank(c, "X", 2, kMaxRank);
  const Shape& x = c.in("X").shape;
  const int64_t channels = x[channels_last(c.attr<std::string>("data_layout")) ? x.rank() - 1 : 1];
  for (const char* slot : slots) {
    check_tensor(c, slot);
    check_rank(c, slot, 1, 1);
    check_numel(c, slot, channels);
    check_same_dtype(c, slot, "X");
  }
}

OpDef& layout_attr(OpDef& def) {
  return def.attr<std::string>("data_layout", "NCHW", "NCHW or NHWC", [](const std::string& v) {
    AB_CHECK(v == "NCHW" || v == "NHWC" || v == "AnyLayout", InvalidArgument,
             "data_layout is {}, expected NCHW or NHWC", v);
  });
}

template <class T> Kernel forward(const KernelArgs& op) {
  return [x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"), out = op.out("Out"),
          last = channels_last(op.attr<std::string>("data_layout"))](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *b = c[bias].data<T>();
    T* to = c[out].template mutable_data<T>();
    const Channels channels(c[x].shape(), last);
    channels.each([&](int64_t k, int64_t at) {
      for (int64_t i = at; i < at + channels.inner; ++i) to[i] = from[i] * a[k] + b[k];
    });
  };
}

template <class T> T* zeroed(KernelContext& c, Out out) {
  if (!c.wants(out)) return nullptr;
  T* to = c[out].mutable_data<T>();
  std::fill(to, to + c[out].numel(), T{0});
  return to;
}

template <class T> Kernel backward(const KernelArgs& op) {
  return [x = op.in("X"), scale = op.in("Scale"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"),
          dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD"),
          last = channels_last(op.attr<std::string>("data_layout"))](KernelContext& c) {
    const T *from = c[x].data<T>(), *a = c[scale].data<T>(), *g = c[dout].data<T>();
    T *to = c.wants(dx) ? c[dx].template mutable_data<T>() : nullptr, *da = zeroed<T>(c, dscale),
      *db = zeroed<T>(c, dbias);
    const Channels channels(c[x].shape(), last);
    channels.each([&](int64_t k, int64_t at) {
      for (int64_t i = at; i < at + channels.inner; ++i) {
        const T up = g[i];
        if (da) da[k] += up * from[i];
        if (db) db[k] += up;
        if (to) to[i] = up * a[k];
      }
    });
  };
}

[[maybe_unused]] OpDef& affine =
    layout_attr(declare_op("affine_channel", __FILE__))
        .doc("Out = Scale[c] X + Bias[c] for the elements of each channel c.")
        .in("X", "[N, C, ...], or [N, ..., C] with data_layout NHWC")
        .in("Scale", "[C]")
        .in("Bias", "[C]")
        .out("Out", "as X")
        .infer([](InferContext& c) {
          check_channels(c, {"Scale", "Bias"});
          c.same_as("Out", "X");
        })
        .grad([](GradContext& g) {
          g.op("affine_channel_grad")
              .in("X", g.in("X"))
              .in("Scale", g.in("Scale"))
              .in("Out@GRAD", g.dout("Out"))
              .out("X@GRAD", g.din("X"))
              .out("Scale@GRAD", g.din("Scale"))
              .out("Bias@GRAD", g.din("Bias"));
        })
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

[[maybe_unused]] OpDef& affine_grad =
    layout_attr(declare_op("affine_channel_grad", __FILE__))
        .doc("Gradients of affine_channel.")
        .in("X", "as of affine_channel")
        .in("Scale", "as of affine_channel")
        .in("Out@GRAD", "as Out")
        .out_optional("X@GRAD", "as X")
        .out_optional("Scale@GRAD", "as Scale")
        .out_optional("Bias@GRAD", "as Scale")
        .infer([](InferContext& c) {
          check_channels(c, {"Scale"});
          check_same(c, "Out@GRAD", "X");
          grad_as(c, "X@GRAD", "X");
          grad_as(c, "Scale@GRAD", "Scale");
          grad_as(c, "Bias@GRAD", "Scale");
        })
        .no_grad(kNoSecondOrder)
        .cpu<float, double>([](auto tag, const KernelArgs& op) { return backward<typename decltype(tag)::type>(op); });

}  // namespace
}  // namespace anabranch
