// Normalizes each channel and applies an activation; the gradient needs only the result, so X may be overwritten.
#include "ops/kernels/workspace.h"
#include "ops/nn/batch_norm.h"

namespace anabranch::nn::inplace_abn_op {
namespace {

using batch_norm::Dims;
using batch_norm::Part;

enum class Act { kNone, kLeakyRelu, kElu };

Act activation(const ir::Op& op) {
  const auto& name = op.attr<std::string>("activation");
  return name == "leaky_relu" ? Act::kLeakyRelu : name == "elu" ? Act::kElu : Act::kNone;
}

// An activation, its inverse, and its derivative as a function of its result.
template <class T> struct Activation {
  Act act;
  T alpha;
  explicit Activation(const ir::Op& op) : act(activation(op)), alpha(static_cast<T>(op.attr<float>("alpha"))) {}

  T operator()(T v) const {
    if (act == Act::kNone || v >= 0) return v;
    return act == Act::kElu ? alpha * std::expm1(v) : alpha * v;
  }
  T inverse(T y) const {
    if (act == Act::kNone || y >= 0) return y;
    return act == Act::kElu ? std::log1p(y / alpha) : y / alpha;
  }
  T slope(T y) const {
    if (act == Act::kNone || y >= 0) return T{1};
    return act == Act::kElu ? y + alpha : alpha;
  }
};

template <class T> Kernel forward(const KernelArgs& op) {
  return [norm = batch_norm::Forward<T>(op), act = Activation<T>(op.op()), y = op.out("Y")](KernelContext& c) mutable {
    T* to = c[y].template mutable_data<T>();
    norm.compute(c, false, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = act(to[i]);
    });
  };
}

// With Y before the activation, n = Scale x + Bias where x is the normalized X, the gradient is that of batch_norm.
template <class T> struct Backward : batch_norm::Backward<T> {
  In y, bias;
  Activation<T> act;

  explicit Backward(const KernelArgs& op) : y(op.in("Y")), bias(op.in("Bias")), act(op.op()) {
    this->scale = op.in("Scale");
    this->dy = op.in("Y@GRAD");
    this->saved_variance = op.in("SavedVariance");
    this->variance = op.in("Variance");
    this->dx = op.out("X@GRAD");
    this->dscale = op.out("Scale@GRAD");
    this->dbias = op.out("Bias@GRAD");
    this->fixed = batch_norm::fixed_statistics(op.op());
    this->last = channels_last(op.op());
    this->epsilon = op.attr<float>("epsilon");
  }

  void operator()(KernelContext& c) {
    const Dims d(c[y].shape(), this->last);
    const T *out = c[y].template data<T>(), *dout = c[this->dy].template data<T>();
    const T *s = c[this->scale].template data<T>(), *b = c[bias].template data<T>();
    const int64_t n = c[y].numel();
    Workspace room;
    T *g = room.get<T>(2 * n + 3 * d.channels), *normal = g + n, *zero = normal + n, *one = zero + d.channels;
    T* factor = one + d.channels;
    batch_norm::each_chunk_of_rows(c, d, [=, this](const Part& rows, int64_t begin) {
      for (int64_t i = begin; i < begin + rows.count * rows.stride; ++i) {
        const int64_t ch = i / rows.width % rows.channels;
        g[i] = dout[i] * act.slope(out[i]);
        normal[i] = (act.inverse(out[i]) - b[ch]) / s[ch];
      }
    });
    if (batch_norm::passes_through(d, this->fixed)) return this->pass(c, d, {g});
    const T* inverse = this->inverse_deviation(c, d.channels);
    for (int64_t k = 0; k < d.channels; ++k) {
      zero[k] = 0;
      one[k] = 1;
      factor[k] = s[k] * inverse[k];
    }
    this->compute(c, d, {g}, normal, zero, one, factor);
  }
};

void infer(InferContext& c) {
  check_rank(c, "X", 2, 5);
  check_tensor(c, "X");
  const Shape& x = c.in("X").shape;
  const int64_t channels = channels_last(c.op()) || x.rank() == 2 ? x[x.rank() - 1] : x[1];
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) check_vector(c, slot, channels);
  if (c.has_in("MomentumTensor")) check_numel(c, "MomentumTensor", 1);
  c.same_as("Y", "X");
  for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"}) {
    c.set_out(slot, c.in("Scale").shape, c.in("X").dtype);
  }
  if (c.has_out("ReserveSpace")) c.set_out("ReserveSpace", Shape{0}, c.in("X").dtype);
}

void infer_grad(InferContext& c) {
  check_tensor(c, "Y");
  check_rank(c, "Y", 2, 5);
  check_same(c, "Y", "Y@GRAD");
  const Shape& y = c.in("Y").shape;
  const int64_t channels = channels_last(c.op()) || y.rank() == 2 ? y[y.rank() - 1] : y[1];
  for (const char* slot : {"Scale", "Bias", "SavedMean", "SavedVariance", "Mean", "Variance"}) {
    check_vector(c, slot, channels, "Y");
  }
  grad_as(c, "X@GRAD", "Y");
  grad_as(c, "Scale@GRAD", "Scale");
  grad_as(c, "Bias@GRAD", "Scale");
}

void differentiate(GradContext& g) {
  auto op = g.op("inplace_abn_grad");
  op.in("Y", g.out("Y")).in("Scale", g.in("Scale")).in("Bias", g.in("Bias"));
  op.in("SavedMean", g.out("SavedMean")).in("SavedVariance", g.out("SavedVariance")).in("Y@GRAD", g.dout("Y"));
  if (g.attr<bool>("use_global_stats")) op.in("Mean", g.out("MeanOut")).in("Variance", g.out("VarianceOut"));
  op.out("X@GRAD", g.din("X")).out("Scale@GRAD", g.din("Scale")).out("Bias@GRAD", g.din("Bias"));
}

AB_OP(inplace_abn)
    .doc(
        "batch_norm followed by an activation: none, leaky_relu (alpha Y where Y < 0) or elu (alpha (exp(Y) - 1) where "
        "Y < 0). The gradient reads Y instead of X.")
    .source("Rota Bulò et al., CVPR 2018, arXiv:1712.02616")
    .in("X", "[N, C], [N, C, ...], or [N, ..., C] with data_layout NHWC")
    .in("Scale", "[C], without zeros")
    .in("Bias", "[C]")
    .in("Mean", "[C]: moving mean")
    .in("Variance", "[C]: moving variance")
    .in_optional("MomentumTensor", "[1] float32, instead of the attribute momentum")
    .out("Y", "like X, which it may alias")
    .out("MeanOut", "Mean, updated in place")
    .out("VarianceOut", "Variance, updated in place")
    .frozen_by("is_test")
    .frozen_by("use_global_stats")
    .out_intermediate("SavedMean", "[C]: the mean used")
    .out_intermediate("SavedVariance", "[C]: 1 / sqrt(variance + epsilon) of the variance used")
    .out_optional("ReserveSpace", "empty")
    .may_share("X", "Y")
    .attr<bool>("is_test", false, "normalizes by the moving statistics")
    .attr<float>("momentum", 0.9f, "weight of the old moving statistics")
    .attr<float>("epsilon", 1.0e-5f, "keeps the quotient finite", within("epsilon", 0.0f, 0.001f))
    .with(layout_attr)
    .attr<std::string>("activation", "", "identity, leaky_relu or elu",
                       one_of("activation", {"", "identity", "leaky_relu", "elu"}))
    .attr<float>("alpha", 0.1f, "parameter of the activation")
    .ignores({"use_mkldnn"})
    .ignores("use_sync_bn", false)
    .attr<bool>("fuse_with_relu", false, "not supported",
                [](bool v) { AB_CHECK(!v, Unsupported, "fuse_with_relu is not supported: append an op relu instead"); })
    .attr<bool>("use_global_stats", false, "normalizes by the moving statistics in training, too")
    .attr<bool>("trainable_statistics", false, "with is_test: uses the statistics of the batch anyway")
    .traits(kRowWise)
    .infer(infer)
    .grad(differentiate)
    .cpu<float, double>([](auto tag, const KernelArgs& op) { return forward<typename decltype(tag)::type>(op); });

AB_GRAD(inplace_abn)
    .doc("Gradients of inplace_abn with respect to X, Scale and Bias, from Y.")
    .in("Y", "Y of inplace_abn")
    .in("Scale", "[C]")
    .in("Bias", "[C]")
    .in("SavedMean", "[C]")
    .in("SavedVariance", "[C]: inverse deviations")
    .in_optional("Mean", "[C], with use_global_stats")
    .in_optional("Variance", "[C], with use_global_stats")
    .in("Y@GRAD", "like Y")
    .out("X@GRAD", "like Y")
    .out("Scale@GRAD", "[C]")
    .out("Bias@GRAD", "[C]")
    .infer(infer_grad)
    .cpu<float, double>([](auto tag, const KernelArgs& op) -> Kernel {
      return Backward<typename decltype(tag)::type>(op);
    });

}  // namespace
}  // namespace anabranch::nn::inplace_abn_op
