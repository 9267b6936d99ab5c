// Normalizes each channel and applies an activation; the gradient needs only the result, so X may be overwritten.
#include "ops/kernels/workspace.h"
#include "ops/math/rectifier_functions.h"
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

// An activation, and, for an alpha above 0, its inverse and its derivative as functions of its result.
template <class T> struct Activation {
  Act act;
  T alpha;
  explicit Activation(const ir::Op& op) : act(activation(op)), alpha(static_cast<T>(op.attr<float>("alpha"))) {}

  T operator()(T v) const {
    if (act == Act::kNone) return v;
    return act == Act::kElu ? math::Elu::forward(v, &alpha) : math::LeakyRelu::forward(v, &alpha);
  }
  T inverse(T y) const {
    if (act == Act::kElu) return y >= 0 ? y : std::log1p(y / alpha);
    return y / slope(y);
  }
  T slope(T y) const {
    if (act == Act::kElu) return y >= 0 ? T{1} : y + alpha;
    return act == Act::kNone ? T{1} : math::LeakyRelu::backward(y, T{1}, &alpha);
  }
};

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [norm = batch_norm::Forward<T>(op), act = Activation<T>(op.op())](KernelContext& c) mutable {
    T* to = c[norm.y].template mutable_data<T>();
    norm.compute(c, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = act(to[i]);
    });
  };
};

// With Y before the activation, n = Scale x + Bias where x is the normalized X, the gradient is that of batch_norm.
template <class T> struct Backward : batch_norm::Backward<T> {
  In bias;
  Activation<T> act;

  explicit Backward(const KernelArgs& op) : batch_norm::Backward<T>(op), bias(op.in("Bias")), act(op.op()) {}

  void operator()(KernelContext& c) {
    const Dims d(c[this->y].shape(), this->last);
    const T *out = c[this->y].template data<T>(), *dout = c[this->dy].template data<T>();
    const T *s = c[this->scale].template data<T>(), *b = c[bias].template data<T>();
    const int64_t n = c[this->y].numel();
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

AB_OP(inplace_abn)
    .doc(
        "batch_norm followed by an activation: none, leaky_relu or elu, as these ops define them. The gradient reads Y "
        "instead of X, so Scale must contain no zeros, and alpha must be above 0.")
    .source("Rota Bulò et al., CVPR 2018, arXiv:1712.02616")
    .with(batch_norm::declare_forward)
    .may_share("X", "Y")
    .attr<std::string>("activation", "", "identity, leaky_relu or elu",
                       one_of("activation", {"", "identity", "leaky_relu", "elu"}))
    .attr<float>("alpha", 0.1f, "parameter of the activation")
    .ignores("use_sync_bn", false)
    .grad([](GradContext& g) {
      const float alpha = g.attr<float>("alpha");
      AB_CHECK(alpha > 0 || activation(g.forward()) == Act::kNone, InvalidArgument,
               "the gradient needs an activation that has an inverse: alpha must be above 0, got {}", alpha);
      batch_norm::differentiate(g, "inplace_abn_grad", "Y", g.out("Y"));
    })
    .cpu<float, double>(forward);

AB_GRAD(inplace_abn)
    .doc("Gradients of inplace_abn with respect to X, Scale and Bias, from Y.")
    .in("Y", "Y of inplace_abn")
    .in("Bias", "[C]")
    .with(batch_norm::declare_backward)
    .infer([](InferContext& c) { batch_norm::infer_grad(c, "Y"); })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Backward<T>(op); });

}  // namespace
}  // namespace anabranch::nn::inplace_abn_op
