// Batch norms with statistics over all replicas: the ops that the pass sync_batch_norm inserts around the sums over
// replicas.
#include "ops/nn/batch_norm_sums.h"

#include "ops/device/args_norm.h"
#include "ops/device/lanes.h"
#include "ops/device/launch.h"
#include "ops/kernels/flat_loop.h"
#include "ops/nn/channels.h"

namespace anabranch::nn::batch_norm_sums_op {
namespace {

template <class T> const T* given(const KernelContext& c, In in) { return in ? c[in].template data<T>() : nullptr; }
template <class T> T* asked(const KernelContext& c, Out out) {
  return c.needs(out) ? c[out].template mutable_data<T>() : nullptr;
}

// Channels as rows of one lane.
template <class Body> void each_channel(const KernelContext& c, const ChannelWalk& walk, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, walk.count()));
  c.parallel_for(walk.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) body(device::OneLane(), k);
  });
}

// Inputs and outputs of the three ops; each has some of them.
struct Arguments {
  In x, dy, scale, bias, mean, variance, momentum_in, used_in, inverse_in, sums_in, sums_own;
  Out y, mean_out, variance_out, used, inverse, dscale, dbias, sums;
  bool last;
  double epsilon = 0, momentum = 0;

  explicit Arguments(const KernelArgs& op) : x(op.in("X")), last(channels_last(op.op())) {}

  ChannelWalk walk(const KernelContext& c) const {
    const Channels d(c[x].shape(), last);
    return {d.outer, d.channels, d.inner};
  }

  device::NormSumsArgs there(const KernelContext& c) const {
    const ChannelWalk w = walk(c);
    const auto in = [&](In slot) { return slot ? device::operand(std::as_const(c[slot])) : device::DeviceIn{}; };
    const auto out = [&](Out slot) { return c.needs(slot) ? device::operand(c[slot]) : device::DeviceOut{}; };
    return {in(x),       in(dy),         in(scale),   in(bias),     in(mean),  in(variance),  in(momentum_in),
            in(used_in), in(inverse_in), in(sums_in), in(sums_own), out(y),    out(mean_out), out(variance_out),
            out(used),   out(inverse),   out(dscale), out(dbias),   out(sums), w.outer,       w.channels,
            w.inner,     epsilon,        momentum};
  }

  template <class T> Kernel queued(const char* kernel) const {
    return [a = *this, kernel = device::kernel_of<T>(kernel)](KernelContext& c) {
      DeviceContext::of(c).launch(kernel, a.there(c));
    };
  }
};

// Shared by the op that computes sums and the ops that use them.
Arguments of_gradient(const KernelArgs& op) {
  Arguments a(op);
  a.dy = op.in("Y@GRAD");
  a.used_in = op.in("SavedMean");
  a.inverse_in = op.in("SavedVariance");
  return a;
}

Arguments of_sums(const KernelArgs& op) {
  Arguments a = of_gradient(op);
  a.sums = op.out("Sums");
  return a;
}

Arguments of_forward(const KernelArgs& op) {
  Arguments a(op);
  a.scale = op.in("Scale");
  a.bias = op.in("Bias");
  a.mean = op.in("Mean");
  a.variance = op.in("Variance");
  a.momentum_in = op.in("MomentumTensor");
  a.sums_in = op.in("Sums");
  a.y = op.out("Y");
  a.mean_out = op.out("MeanOut");
  a.variance_out = op.out("VarianceOut");
  a.used = op.out("SavedMean");
  a.inverse = op.out("SavedVariance");
  a.epsilon = static_cast<double>(op.attr<float>("epsilon"));
  a.momentum = static_cast<double>(op.attr<float>("momentum"));
  return a;
}

Arguments of_backward(const KernelArgs& op) {
  Arguments a = of_gradient(op);
  a.scale = op.in("Scale");
  a.sums_in = op.in("Sums");
  a.sums_own = op.in("OwnSums");
  a.y = op.out("X@GRAD");
  a.dscale = op.out("Scale@GRAD");
  a.dbias = op.out("Bias@GRAD");
  return a;
}

void check_sums(const InferContext& c, const char* slot, int64_t channels) {
  if (channels != kUnknown) check_numel(c, slot, 2 * channels + 1);
}

int64_t channels_of(const InferContext& c) {
  const Shape& x = c.in("X").shape;
  return channels_last(c.op()) || x.rank() == 2 ? x[x.rank() - 1] : x[1];
}

AB_OP(batch_norm_sums)
    .doc(
        "Sums = for each channel the sums of X and of X^2, or of Y@GRAD and of Y@GRAD times the normalized X, followed "
        "by the number of elements of a channel.")
    .in("X", "like X of batch_norm")
    .in_optional("SavedMean", "[C], with Y@GRAD")
    .in_optional("SavedVariance", "[C], with Y@GRAD: inverse deviations")
    .in_optional("Y@GRAD", "like X")
    .out("Sums", "[2 C + 1] float64")
    .with(layout_attr)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      const int64_t channels = channels_of(c);
      c.set_out("Sums", Shape{channels == kUnknown ? kUnknown : 2 * channels + 1}, DType::kFloat64);
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [a = of_sums(op)](KernelContext& c) {
        const ChannelWalk walk = a.walk(c);
        each_channel(c, walk,
                     ChannelSumsOf<T>{given<T>(c, a.x), given<T>(c, a.dy), given<T>(c, a.used_in),
                                      given<T>(c, a.inverse_in), asked<double>(c, a.sums), walk});
      };
    })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) -> Kernel {
      return of_sums(op).queued<typename decltype(tag)::type>("batch_norm_sums");
    });

AB_OP(batch_norm_by_sums)
    .doc("batch_norm by the sums of a batch that contains X.")
    .in("X", "like X of batch_norm")
    .in("Scale", "[C]")
    .in("Bias", "[C]")
    .in("Mean", "[C]: moving mean")
    .in("Variance", "[C]: moving variance")
    .in_optional("MomentumTensor", "[1] float32, instead of the attribute momentum")
    .in("Sums", "[2 C + 1] float64: batch_norm_sums over all replicas")
    .out("Y", "like X")
    .out("MeanOut", "Mean, updated in place")
    .out("VarianceOut", "Variance, updated in place")
    .out("SavedMean", "[C]")
    .out("SavedVariance", "[C]: inverse deviations")
    .attr<float>("momentum", 0.9f, "weight of the old moving statistics")
    .attr<float>("epsilon", 1.0e-5f, "keeps the quotient finite")
    .with(layout_attr)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_sums(c, "Sums", channels_of(c));
      c.same_as("Y", "X");
      for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
        c.set_out(slot, c.in("Scale").shape, c.in("Scale").dtype);
      }
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [a = of_forward(op)](KernelContext& c) {
        const ChannelWalk walk = a.walk(c);
        const SumsOfParts sums{given<double>(c, a.sums_in), walk.channels};
        each_channel(c, walk,
                     NormaliseBySums<T>{given<T>(c, a.x), given<T>(c, a.scale), given<T>(c, a.bias),
                                        given<T>(c, a.mean), given<T>(c, a.variance), given<float>(c, a.momentum_in),
                                        sums, asked<T>(c, a.y), asked<T>(c, a.mean_out), asked<T>(c, a.variance_out),
                                        asked<T>(c, a.used), asked<T>(c, a.inverse), walk, a.momentum, a.epsilon});
      };
    })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) -> Kernel {
      return of_forward(op).queued<typename decltype(tag)::type>("batch_norm_by_sums");
    });

AB_OP(batch_norm_grad_by_sums)
    .doc(
        "Gradients of batch_norm_by_sums with respect to X, by the sums over all replicas, and to Scale and Bias of "
        "this replica.")
    .in("X", "like X of batch_norm")
    .in("Scale", "[C]")
    .in("SavedMean", "[C]")
    .in("SavedVariance", "[C]: inverse deviations")
    .in("Y@GRAD", "like X")
    .in("Sums", "[2 C + 1] float64: batch_norm_sums over all replicas")
    .in("OwnSums", "[2 C + 1] float64: batch_norm_sums of this replica")
    .out("X@GRAD", "like X")
    .out_optional("Scale@GRAD", "[C]")
    .out_optional("Bias@GRAD", "[C]")
    .with(layout_attr)
    .effects(kEngineOnly)
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      for (const char* slot : {"Sums", "OwnSums"}) check_sums(c, slot, channels_of(c));
      c.same_as("X@GRAD", "X");
      c.same_as("Scale@GRAD", "Scale");
      c.same_as("Bias@GRAD", "Scale");
    })
    .no_grad("inserted after the gradients")
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      using T = typename decltype(tag)::type;
      return [a = of_backward(op)](KernelContext& c) {
        const ChannelWalk walk = a.walk(c);
        const SumsOfParts sums{given<double>(c, a.sums_in), walk.channels};
        const SumsOfParts own{given<double>(c, a.sums_own), walk.channels};
        each_channel(c, walk,
                     GradientBySums<T>{given<T>(c, a.x), given<T>(c, a.dy), given<T>(c, a.scale),
                                       given<T>(c, a.used_in), given<T>(c, a.inverse_in), sums, own, asked<T>(c, a.y),
                                       asked<T>(c, a.dscale), asked<T>(c, a.dbias), walk});
      };
    })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) -> Kernel {
      return of_backward(op).queued<typename decltype(tag)::type>("batch_norm_grad_by_sums");
    });

}  // namespace
}  // namespace anabranch::nn::batch_norm_sums_op
