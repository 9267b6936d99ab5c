// Normalizes each channel over the batch.
#include "ops/nn/batch_norm.h"

#include "ops/nn/blocked.h"
#include "ops/nn/norm_second_order.h"

namespace anabranch::nn::batch_norm {

// ---- in common with inplace_abn and batch_norm_by_sums

int64_t infer_channels(InferContext& c, const char* image) {
  check_rank(c, image, 2, 5);
  const Shape& x = c.in(image).shape;
  return channels_last(c.op()) || x.rank() == 2 ? x[x.rank() - 1] : x[1];
}

void infer(InferContext& c) {
  const int64_t channels = infer_channels(c, "X");
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) check_statistics(c, slot, channels);
  if (c.has_in("MomentumTensor")) check_numel(c, "MomentumTensor", 1);
  c.same_as("Y", "X");
  const Shape per_channel = c.in("Scale").shape;
  const DType statistics = dtype_of_statistics(c);
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    c.set_out(slot, per_channel, statistics);
  }
  c.share_lod("MeanOut", "Mean");
  c.share_lod("VarianceOut", "Variance");
  if (c.has_out("ReserveSpace")) c.set_out("ReserveSpace", Shape{0}, statistics);
}

void infer_grad(InferContext& c, const char* image) {
  const int64_t channels = infer_channels(c, image);
  check_same(c, image, "Y@GRAD");
  for (const char* slot : {"Scale", "Bias", "SavedMean", "SavedVariance", "Mean", "Variance"}) {
    check_statistics(c, slot, channels, image);
  }
  grad_as(c, "X@GRAD", image);
  grad_as(c, "Scale@GRAD", "Scale");
  grad_as(c, "Bias@GRAD", "Scale");
}

void differentiate(GradContext& g, const char* type, const char* slot, std::vector<std::string> image) {
  auto op = g.op(type);
  op.in(slot, std::move(image)).in("Scale", g.in("Scale")).in("Bias", g.in("Bias"));
  op.in("SavedMean", g.out("SavedMean")).in("SavedVariance", g.out("SavedVariance")).in("Y@GRAD", g.dout("Y"));
  if (g.attr<bool>("use_global_stats")) op.in("Mean", g.out("MeanOut")).in("Variance", g.out("VarianceOut"));
  op.out("X@GRAD", g.din("X")).out("Scale@GRAD", g.din("Scale")).out("Bias@GRAD", g.din("Bias"));
}

void declare_moving(OpDef& def) {
  def.in("X", "[N, C], [N, C, ...], or [N, ..., C] with data_layout NHWC");
  def.in("Scale", "[C]").in("Bias", "[C]").in("Mean", "[C]: moving mean").in("Variance", "[C]: moving variance");
  def.in_optional("MomentumTensor", "[1] float32, instead of the attribute momentum");
  def.out("Y", "like X").out("MeanOut", "Mean, updated in place").out("VarianceOut", "Variance, updated in place");
  def.attr<float>("momentum", 0.9f, "weight of the old moving statistics");
  def.attr<float>("epsilon", 1.0e-5f, "keeps the quotient finite", within("epsilon", 0.0f, 0.001f));
  def.with(layout_attr);
}

void declare_forward(OpDef& def) {
  def.with(declare_moving).frozen_by("is_test").frozen_by("use_global_stats");
  def.out_intermediate("SavedMean", "[C]: the mean used, 0 for one element per channel");
  def.out_intermediate("SavedVariance",
                       "[C]: 1 / sqrt(variance + epsilon) of the variance used, 0 for one element per channel");
  def.out_optional("ReserveSpace", "empty").ignores({"use_mkldnn"});
  def.attr<bool>("is_test", false, "normalizes by the moving statistics");
  def.attr<bool>("use_global_stats", false, "normalizes by the moving statistics in training, too");
  def.attr<bool>("trainable_statistics", false, "with is_test: uses the statistics of the batch anyway");
  def.attr<bool>("fuse_with_relu", false, "not supported", [](bool v) {
    AB_CHECK(!v, Unsupported, "fuse_with_relu is not supported: append an op relu instead");
  });
  def.traits(kRowWise).infer(infer);
}

void declare_backward(OpDef& def) {
  def.in("Scale", "[C]").in("SavedMean", "[C]").in("SavedVariance", "[C]: inverse deviations");
  def.in_optional("Mean", "[C], with use_global_stats").in_optional("Variance", "[C], with use_global_stats");
  def.in("Y@GRAD", "like Y").out("X@GRAD", "like Y").out("Scale@GRAD", "[C]").out("Bias@GRAD", "[C]");
}

namespace {

// With fixed statistics X@GRAD is Y@GRAD times a constant.
void differentiate_twice(second_order::Ops& o) {
  const std::string x = o.in("X");
  const int rank = o.rank(x), at = o.attr<std::string>("data_layout") == "NHWC" || rank == 2 ? rank - 1 : 1;
  const std::vector<int32_t> others = axes_without(rank, at, at);
  const float epsilon = o.attr<float>("epsilon");
  const bool test = o.attr<bool>("is_test") && !o.attr<bool>("trainable_statistics");
  if (!test && !o.attr<bool>("use_global_stats")) return normalized_gradient(o, {others, others, at, epsilon});
  const std::string dy = o.in("Y@GRAD"), mean = o.in(o.given("Mean") ? "Mean" : "SavedMean");
  const std::string inverse =
      o.given("Variance") ? o.unary("rsqrt", o.scale(o.in("Variance"), 1, epsilon)) : o.in("SavedVariance");
  const std::string normal = o.binary("elementwise_mul", o.binary("elementwise_sub", x, mean, at), inverse, at);
  if (o.needed("Scale@GRAD")) o.is("Scale@GRAD", o.sum(o.mul(dy, normal), others, false));
  if (o.needed("Bias@GRAD")) o.is("Bias@GRAD", o.sum(dy, others, false));
  if (o.needed("X@GRAD")) o.is("X@GRAD", o.binary("elementwise_mul", dy, o.mul(o.in("Scale"), inverse), at));
}

template <class T> Kernel forward(const KernelArgs& op, bool relu) {
  if (is_blocked(op.op(), kBlocked)) return blocked_forward(op, relu);
  return Forward<T>(op, relu);
}
template <class T> Kernel backward(const KernelArgs& op) {
  if (is_blocked(op.op(), kBlocked)) return blocked_backward(op);
  return Backward<T>(op);
}

AB_OP(batch_norm)
    .doc(
        "Y = (X - mean) / sqrt(variance + epsilon) Scale + Bias for each channel, with the mean and (biased) variance "
        "of the batch; MeanOut = momentum Mean + (1 - momentum) mean, VarianceOut likewise. With is_test or "
        "use_global_stats Mean and Variance are used instead of those of the batch and are not updated. A batch of one "
        "element per channel is copied and updates nothing.")
    .source("Ioffe & Szegedy, ICML 2015, arXiv:1502.03167")
    .with(declare_forward)
    .images({"X", "Y"}, kBlocked)
    .grad([](GradContext& g) { differentiate(g, "batch_norm_grad", "X", g.in("X")); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op, false); })
    .with([](OpDef& def) { forward_on_devices(def, false); });

AB_GRAD(batch_norm)
    .doc("Gradients of batch_norm with respect to X, Scale and Bias.")
    .grad(second_order::through(differentiate_twice))
    .in("X", "X of batch_norm")
    .in_optional("Bias", "[C]")
    .with(declare_backward)
    .infer([](InferContext& c) { infer_grad(c, "X"); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return backward<T>(op); })
    .with([](OpDef& def) { backward_on_devices(def, false); });

// ---- followed by relu, made by the pass fuse_bn_act. The same bits as the separate ops.

// Device kernels rely on the channels being the last axis.
void check_matrix(const InferContext& c) {
  if (c.op().attr<bool>(kMatrix)) check_rank(c, "X", 2, 2);
}
void matrix_attr(OpDef& def) { def.attr<bool>(kMatrix, false, "X is a matrix"); }

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
    .cpu<float>([](auto, const KernelArgs& op) {
      AB_CHECK(!op.in("Z"), Unsupported, "{}: Z must not be given: residual addition is fused on devices only",
               op.op().type);
      return forward<float>(op, true);
    })
    .with([](OpDef& def) { forward_on_devices(def, true); });

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
      infer_grad(c, "X");
    })
    .no_grad(kNoSecondOrder)
    .cpu<float>([](auto, const KernelArgs& op) {
      AB_CHECK(!op.out("Z@GRAD"), Unsupported,
               "{}: Z@GRAD must not be requested: residual addition is fused on devices only", op.op().type);
      return backward<float>(op);
    })
    .with([](OpDef& def) { backward_on_devices(def, true); });

}  // namespace
}  // namespace anabranch::nn::batch_norm
