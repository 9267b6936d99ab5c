// Normalizes each channel over the batch.
#include "ops/nn/batch_norm.h"

#include "ops/device/batch_norm_call.h"
#include "ops/nn/blocked.h"
#include "ops/nn/norm_second_order.h"

namespace anabranch::nn::batch_norm_op {
namespace {

// ---- shapes

int64_t infer_channels(const InferContext& c) {
  check_rank(c, "X", 2, 5);
  check_tensor(c, "X");
  const Shape& x = c.in("X").shape;
  return channels_last(c.op()) || x.rank() == 2 ? x[x.rank() - 1] : x[1];
}

void infer(InferContext& c) {
  const int64_t channels = infer_channels(c);
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) check_statistics(c, slot, channels);
  if (c.has_in("MomentumTensor")) check_numel(c, "MomentumTensor", 1);
  c.same_as("Y", "X");
  const Shape per_channel = c.in("Scale").shape;
  const DType statistics = dtype_of_statistics(c);
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    c.set_out(slot, per_channel, statistics);
  }
  if (c.has_out("ReserveSpace")) c.set_out("ReserveSpace", Shape{0}, statistics);
}

void infer_grad(InferContext& c) {
  const int64_t channels = infer_channels(c);
  check_same(c, "X", "Y@GRAD");
  for (const char* slot : {"Scale", "SavedMean", "SavedVariance", "Mean", "Variance"}) {
    check_statistics(c, slot, channels);
  }
  grad_as(c, "X@GRAD", "X");
  grad_as(c, "Scale@GRAD", "Scale");
  grad_as(c, "Bias@GRAD", "Scale");
}

void differentiate(GradContext& g) {
  auto op = g.op("batch_norm_grad");
  op.in("X", g.in("X")).in("Scale", g.in("Scale")).in("Bias", g.in("Bias"));
  op.in("SavedMean", g.out("SavedMean")).in("SavedVariance", g.out("SavedVariance")).in("Y@GRAD", g.dout("Y"));
  if (g.attr<bool>("use_global_stats")) op.in("Mean", g.out("MeanOut")).in("Variance", g.out("VarianceOut"));
  op.out("X@GRAD", g.din("X")).out("Scale@GRAD", g.din("Scale")).out("Bias@GRAD", g.din("Bias"));
}

// With fixed statistics X@GRAD is Y@GRAD times a constant.
void differentiate_twice(second_order::Ops& o) {
  const std::string x = o.in("X");
  const int rank = o.rank(x), at = o.attr<std::string>("data_layout") == "NHWC" || rank == 2 ? rank - 1 : 1;
  const std::vector<int32_t> others = axes_without(rank, at, at);
  const float epsilon = o.attr<float>("epsilon");
  const bool test = o.attr<bool>("is_test") && !o.attr<bool>("trainable_statistics");
  if (!test && !o.attr<bool>("use_global_stats")) return normalised_gradient(o, {others, others, at, epsilon});
  const std::string dy = o.in("Y@GRAD"), mean = o.in(o.given("Mean") ? "Mean" : "SavedMean");
  const std::string inverse =
      o.given("Variance") ? o.unary("rsqrt", o.scale(o.in("Variance"), 1, epsilon)) : o.in("SavedVariance");
  const std::string normal = o.binary("elementwise_mul", o.binary("elementwise_sub", x, mean, at), inverse, at);
  if (o.needed("Scale@GRAD")) o.is("Scale@GRAD", o.sum(o.mul(dy, normal), others, false));
  if (o.needed("Bias@GRAD")) o.is("Bias@GRAD", o.sum(dy, others, false));
  if (o.needed("X@GRAD")) o.is("X@GRAD", o.binary("elementwise_mul", dy, o.mul(o.in("Scale"), inverse), at));
}

// ---- on devices

template <class T> Kernel queued_forward(const KernelArgs& op) {
  AB_CHECK(!op.in("MomentumTensor"), Unsupported,
           "MomentumTensor is not supported on devices, whose library calls take momentum as an attribute");
  return
      [call = device::BatchNormCall<T, device::BatchNormArgs>("batch_norm", "batch_norm_last", op,
                                                              batch_norm::fixed_statistics(op.op())),
       x = op.in("X"), scale = op.in("Scale"), bias = op.in("Bias"), mean = op.in("Mean"), variance = op.in("Variance"),
       y = op.out("Y"), mean_out = op.out("MeanOut"), variance_out = op.out("VarianceOut"),
       own_mean = op.out("SavedMean"), own_variance = op.out("SavedVariance")](KernelContext& c) mutable {
        call.run(DeviceContext::of(c), c[x].shape(),
                 {read_by(c[x]), read_by(c[scale]), read_by(c[bias]), read_by(c[mean]), read_by(c[variance]),
                  written_by(c[y]), device::needed_by(c, mean_out), device::needed_by(c, variance_out),
                  written_by(c[own_mean]), written_by(c[own_variance])});
      };
}

template <class T> Kernel queued_backward(const KernelArgs& op) {
  return [call = device::BatchNormCall<T, device::BatchNormGradArgs>("batch_norm_grad", "batch_norm_last_grad", op,
                                                                     batch_norm::fixed_statistics(op.op())),
          x = op.in("X"), scale = op.in("Scale"), dy = op.in("Y@GRAD"), own_mean = op.in("SavedMean"),
          own_variance = op.in("SavedVariance"), mean = op.in("Mean"), variance = op.in("Variance"),
          dx = op.out("X@GRAD"), dscale = op.out("Scale@GRAD"), dbias = op.out("Bias@GRAD")](KernelContext& c) mutable {
    call.run(DeviceContext::of(c), c[x].shape(),
             {read_by(c[x]), read_by(c[scale]), read_by(c[dy]), read_by(c[own_mean]), read_by(c[own_variance]),
              device::given_to(c, mean), device::given_to(c, variance), device::needed_by(c, dx),
              device::needed_by(c, dscale), device::needed_by(c, dbias)});
  };
}

AB_OP(batch_norm)
    .doc(
        "Y = (X - mean) / sqrt(variance + epsilon) Scale + Bias for each channel, with the mean and (biased) variance "
        "of the batch; MeanOut = momentum Mean + (1 - momentum) mean, VarianceOut likewise. With is_test or "
        "use_global_stats Mean and Variance are used instead of those of the batch and are not updated. A batch of one "
        "element per channel is copied and updates nothing.")
    .source("Ioffe & Szegedy, ICML 2015, arXiv:1502.03167")
    .in("X", "[N, C], [N, C, ...], or [N, ..., C] with data_layout NHWC")
    .in("Scale", "[C]")
    .in("Bias", "[C]")
    .in("Mean", "[C]: moving mean")
    .in("Variance", "[C]: moving variance")
    .in_optional("MomentumTensor", "[1] float32, instead of the attribute momentum")
    .out("Y", "like X")
    .out("MeanOut", "Mean, updated in place")
    .out("VarianceOut", "Variance, updated in place")
    .frozen_by("is_test")
    .frozen_by("use_global_stats")
    .out_intermediate("SavedMean", "[C]: the mean used, 0 for one element per channel")
    .out_intermediate("SavedVariance",
                      "[C]: 1 / sqrt(variance + epsilon) of the variance used, 0 for one element per channel")
    .out_optional("ReserveSpace", "empty")
    .attr<bool>("is_test", false, "normalizes by the moving statistics")
    .attr<float>("momentum", 0.9f, "weight of the old moving statistics")
    .attr<float>("epsilon", 1.0e-5f, "keeps the quotient finite", within("epsilon", 0.0f, 0.001f))
    .with(layout_attr)
    .ignores({"use_mkldnn"})
    .attr<bool>("fuse_with_relu", false, "not supported",
                [](bool v) { AB_CHECK(!v, Unsupported, "fuse_with_relu is not supported: append an op relu instead"); })
    .attr<bool>("use_global_stats", false, "normalizes by the moving statistics in training, too")
    .attr<bool>("trainable_statistics", false, "with is_test: uses the statistics of the batch anyway")
    .traits(kRowWise)
    .images({"X", "Y"}, kBlocked)
    .infer(infer)
    .grad(differentiate)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      if (is_blocked(op.op(), kBlocked)) return batch_norm::blocked_forward(op);
      return batch_norm::Forward<typename decltype(tag)::type>(op);
    })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) -> Kernel {
      return queued_forward<typename decltype(tag)::type>(op);
    });

AB_GRAD(batch_norm)
    .doc("Gradients of batch_norm with respect to X, Scale and Bias.")
    .grad(second_order::through(differentiate_twice))
    .in("X", "X of batch_norm")
    .in("Scale", "[C]")
    .in_optional("Bias", "[C]")
    .in("SavedMean", "[C]")
    .in("SavedVariance", "[C]: inverse deviations")
    .in_optional("Mean", "[C], with use_global_stats")
    .in_optional("Variance", "[C], with use_global_stats")
    .in("Y@GRAD", "like X")
    .out("X@GRAD", "like X")
    .out("Scale@GRAD", "[C]")
    .out("Bias@GRAD", "[C]")
    .infer(infer_grad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      if (is_blocked(op.op(), kBlocked)) return batch_norm::blocked_backward(op);
      return batch_norm::Backward<typename decltype(tag)::type>(op);
    })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) -> Kernel {
      return queued_backward<typename decltype(tag)::type>(op);
    });

// ---- followed by relu, made by the pass fuse_bn_act

// Device kernels rely on the channels being the last axis.
void check_matrix(const InferContext& c) {
  if (c.op().attr<bool>(batch_norm::kMatrix)) check_rank(c, "X", 2, 2);
}
void matrix_attr(OpDef& def) { def.attr<bool>(batch_norm::kMatrix, false, "X is a matrix"); }

AB_OP(fused_batch_norm_act)
    .like(ab_op_batch_norm)
    .doc("batch_norm followed by Y = max(Y + Z, 0), or max(Y, 0) without Z.")
    .in_optional("Z", "like X, on devices only")
    .with(matrix_attr)
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      check_matrix(c);
      if (c.has_in("Z")) check_same(c, "X", "Z");
      infer(c);
    })
    .no_grad("inserted after the gradients")
    .cpu<float>([](auto, const KernelArgs& op) { return batch_norm::relu_forward(op); })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) {
      return batch_norm::queued_relu_forward<typename decltype(tag)::type>(op);
    });

AB_OP(fused_batch_norm_act_grad)
    .like(ab_op_batch_norm_grad)
    .doc(
        "Gradients of fused_batch_norm_act with respect to X, Scale, Bias and Z. On devices Bias, if given, and Scale "
        "are those of the forward op; with Z@GRAD Y is always read.")
    .in("Y", "like X: the forward op's result")
    .in_optional("MoreY@GRAD", "like X, with Z@GRAD: added to Y@GRAD")
    .out_optional("Z@GRAD", "like X, on devices only")
    .may_share("Y@GRAD", "Z@GRAD")
    .with(matrix_attr)
    .effects(kEngineOnly)
    .infer([](InferContext& c) {
      check_matrix(c);
      check_same(c, "X", "Y");
      if (c.has_in("MoreY@GRAD")) check_same(c, "X", "MoreY@GRAD");
      grad_as(c, "Z@GRAD", "X");
      infer_grad(c);
      check_statistics(c, "Bias", infer_channels(c));
    })
    .no_grad(kNoSecondOrder)
    .cpu<float>([](auto, const KernelArgs& op) { return batch_norm::relu_backward(op); })
    .device<float, double, float16, bfloat16>([](auto tag, const KernelArgs& op) {
      return batch_norm::queued_relu_backward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::nn::batch_norm_op
