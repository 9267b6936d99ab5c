// A unary function and a sum or product in one op: the pairs that 1.8.5 has kernels for.
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "ops/declare/declare.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/wide.h"

namespace anabranch::math::fused_elemwise_activation_op {
namespace {

using Strings = std::vector<std::string>;

enum class Unary { kRelu, kScale, kTanh, kSigmoid };

struct Form {
  const char *first, *second;
  bool inner_unary, product;  // Out = X + f(Y) or X f(Y); else Out = f(X + Y) or f(X Y)
  Unary unary;
};

constexpr Form kForms[] = {
    {"elementwise_add", "relu", true, false, Unary::kRelu},
    {"elementwise_add", "scale", true, false, Unary::kScale},
    {"elementwise_mul", "scale", true, true, Unary::kScale},
    {"elementwise_mul", "tanh", true, true, Unary::kTanh},
    {"elementwise_mul", "sigmoid", true, true, Unary::kSigmoid},
    {"relu", "elementwise_add", false, false, Unary::kRelu},
    {"scale", "elementwise_add", false, false, Unary::kScale},
    {"tanh", "elementwise_add", false, false, Unary::kTanh},
};

// In the gradient op, functor names have the suffix of gradient ops.
std::string without_suffix(std::string name) {
  constexpr std::string_view kSuffix = "_grad";
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

const Form& form_of(const ir::Op& op) {
  const auto& names = op.attr<Strings>("functor_list");
  AB_CHECK(names.size() == 2, InvalidArgument, "functor_list must be two functions, got {}", names.size());
  for (const Form& form : kForms) {
    if (without_suffix(names[0]) == form.first && without_suffix(names[1]) == form.second) return form;
  }
  AB_THROW(Unsupported,
           "functor_list must be elementwise_add with relu, scale or tanh, or elementwise_mul with scale, tanh or "
           "sigmoid, in a supported order; got {}, {}",
           names[0], names[1]);
}

template <class T> struct Function {
  Unary unary;
  T factor;
  explicit Function(const ir::Op& op) : unary(form_of(op).unary), factor(static_cast<T>(op.attr<float>("scale"))) {}

  T operator()(T v) const {
    switch (unary) {
      case Unary::kRelu: return v < 0 ? T{0} : v;
      case Unary::kScale: return v * factor;
      case Unary::kTanh: return std::tanh(v);
      case Unary::kSigmoid: return 1 / (1 + std::exp(-v));
    }
    return v;
  }
  // The derivative at the result `out`.
  T slope(T out) const {
    switch (unary) {
      case Unary::kRelu: return static_cast<T>(out > 0);
      case Unary::kScale: return factor;
      case Unary::kTanh: return 1 - out * out;
      case Unary::kSigmoid: return out * (1 - out);
    }
    return T{1};
  }
};

// out = f(x) for n elements: one loop per function, so that the choice is not made per element.
template <class T> void apply(const KernelContext& c, const Function<T>& f, int64_t n, const T* x, T* out) {
  const auto each = [&](UnaryLoop loop, auto fn) {
    if constexpr (std::is_same_v<T, float>) {
      if (loop) return run_loop(c, kMathGrain, n, x, out, loop);
    }
    map(c, kMathGrain, n, x, out, fn);
  };
  switch (f.unary) {
    case Unary::kRelu: return each(simd::relu, [](T v) { return v < 0 ? T{0} : v; });
    case Unary::kScale: return each(nullptr, [factor = f.factor](T v) { return v * factor; });
    case Unary::kTanh: return each(simd::tanh, [](T v) { return std::tanh(v); });
    case Unary::kSigmoid: return each(simd::sigmoid, [](T v) { return 1 / (1 + std::exp(-v)); });
  }
}

void fused_attrs(OpDef& def) {
  def.attr<int32_t>("axis", -1, "axis of X with which the first axis of Y is aligned; -1 aligns the last axes")
      .attr<float>("scale", 0.0f, "factor for scale")
      .attr<bool>("save_intermediate_out", false, "outputs IntermediateOut")
      .required_attr("functor_list", AttrType::kStrings, "the two functions, the outer one first");
}

void infer(InferContext& c) {
  const Form& form = form_of(c.op());
  check_same_dtype(c, "X", "Y");
  const Meta &x = c.in("X"), &y = c.in("Y");
  const Shape out = broadcast_shape(x.shape, y.shape, c.attr<int32_t>("axis"));
  c.set_out("Out", out, x.dtype);
  c.set_out("IntermediateOut", form.inner_unary ? y.shape : out, x.dtype);
  if (out.rank() > 0 && x.shape.rank() > 0 && out[0] == x.shape[0]) c.share_lod("Out", "X");
}

// out = a + b or a b, with broadcasting.
template <class T>
void meet(const KernelContext& c, const NdLoop<3>& loop, bool product, const T* a, const T* b, T* out) {
  const auto step = loop.inner_strides();
  loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
    const T *x = a + at[1], *y = b + at[2];
    T* to = out + at[0];
    if (step[1] == 1 && step[2] == 1) {
      return in_wide_vectors([=] {
        if (product) {
          for (int64_t i = 0; i < n; ++i) to[i] = x[i] * y[i];
        } else {
          for (int64_t i = 0; i < n; ++i) to[i] = x[i] + y[i];
        }
      });
    }
    for (int64_t i = 0; i < n; ++i, x += step[1], y += step[2]) to[i] = product ? *x * *y : *x + *y;
  });
}

template <class T> Kernel forward(const KernelArgs& op) {
  const Form form = form_of(op.op());
  return [=, axis = op.attr<int32_t>("axis"), f = Function<T>(op.op()), x = op.in("X"), y = op.in("Y"),
          out = op.out("Out"), between = op.out("IntermediateOut"),
          scratch = std::make_shared<Tensor>()](KernelContext& c) {
    const Shape& whole = c[out].shape();
    const auto loop = broadcast_loop(whole, c[x].shape(), c[y].shape(), axis);
    Tensor* inner = c.needs(between) ? &c[between] : scratch.get();
    inner->resize(form.inner_unary ? c[y].shape() : whole, dtype_of<T>);
    const T *a = c[x].data<T>(), *b = c[y].data<T>();
    T *u = inner->mutable_data<T>(), *to = c[out].mutable_data<T>();
    if (form.inner_unary) {
      apply(c, f, c[y].numel(), b, u);
      meet(c, loop, form.product, a, static_cast<const T*>(u), to);
    } else {
      meet(c, loop, form.product, a, b, u);
      apply(c, f, whole.numel(), static_cast<const T*>(u), to);
    }
  };
}

// ---- gradients, from X and Y only

template <class T> struct Backward {
  Form form;
  int32_t axis;
  Function<T> f;
  In x, y, dout;
  Out dx, dy;
  std::shared_ptr<std::array<Tensor, 3>> scratch = std::make_shared<std::array<Tensor, 3>>();

  explicit Backward(const KernelArgs& op)
      : form(form_of(op.op())),
        axis(op.attr<int32_t>("axis")),
        f(op.op()),
        x(op.in("X")),
        y(op.in("Y")),
        dout(op.in("Out@GRAD")),
        dx(op.out("X@GRAD")),
        dy(op.out("Y@GRAD")) {}

  T* memory(int i, const Shape& shape) const {
    Tensor& t = (*scratch)[static_cast<size_t>(i)];
    t.resize(shape, dtype_of<T>);
    return t.mutable_data<T>();
  }

  // For an operand, laid on the axes of the result: `gradient` of the joint result, times the other operand in a
  // product, summed over the axes on which it was broadcast.
  void operand(const KernelContext& c, const NdLoop<3>& loop, const Shape& own, const T* other, int other_at,
               const T* gradient, T* to) const {
    const Shape& whole = c[dout].shape();
    if (form.product) {
      T* terms = memory(2, whole);
      const int64_t step = loop.inner_strides()[static_cast<size_t>(other_at)];
      loop.run(c, kCheapGrain, [=](const auto& places, int64_t n) {
        const T* factor = other + places[static_cast<size_t>(other_at)];
        for (int64_t i = 0; i < n; ++i, factor += step) terms[places[0] + i] = gradient[places[0] + i] * *factor;
      });
      gradient = terms;
    }
    sum_to(c, whole, own, gradient, to);
  }

  void operator()(KernelContext& c) const {
    const Shape& whole = c[dout].shape();
    const auto loop = broadcast_loop(whole, c[x].shape(), c[y].shape(), axis);
    const Laid own = laid(c[x].shape(), c[y].shape(), axis);
    const T *a = c[x].data<T>(), *b = c[y].data<T>(), *g = c[dout].data<T>();
    const Function<T> fn = f;
    if (form.inner_unary) {
      T* u = memory(0, c[y].shape());
      map(c, kMathGrain, c[y].numel(), b, u, fn);
      if (c.needs(dx)) operand(c, loop, own.x, u, 2, g, c[dx].mutable_data<T>());
      if (!c.needs(dy)) return;
      T* to = c[dy].mutable_data<T>();
      operand(c, loop, own.y, a, 1, g, to);
      map(c, kCheapGrain, c[y].numel(), to, u, to, [=](T v, T out) { return v * fn.slope(out); });
      return;
    }
    T *z = memory(0, whole), *dz = memory(1, whole);
    meet(c, loop, form.product, a, b, z);
    map(c, kMathGrain, whole.numel(), z, g, dz, [=](T v, T d) { return d * fn.slope(fn(v)); });
    if (c.needs(dx)) operand(c, loop, own.x, b, 2, dz, c[dx].mutable_data<T>());
    if (c.needs(dy)) operand(c, loop, own.y, a, 1, dz, c[dy].mutable_data<T>());
  }
};

void differentiate(GradContext& g) {
  Strings names = g.attr<Strings>("functor_list");
  for (auto& name : names) name += "_grad";
  g.op("fused_elemwise_activation_grad")
      .in("X", g.in("X"))
      .in("Y", g.in("Y"))
      .in("Out", g.out("Out"))
      .in("IntermediateOut", g.out("IntermediateOut"))
      .in("Out@GRAD", g.dout("Out"))
      .out("X@GRAD", g.din("X"))
      .out("Y@GRAD", g.din("Y"))
      .attr("functor_list", names);
}

AB_OP(fused_elemwise_activation)
    .doc("Out = f(g(X, Y)) or g(X, f(Y)): g adds or multiplies, f is relu, scale, tanh or sigmoid.")
    .in("X", "[...] float")
    .in("Y", "like X, with a shape that broadcasts with X's")
    .out("Out", "the joint shape")
    .out_intermediate("IntermediateOut", "result of the inner function")
    .with(fused_attrs)
    .traits(kRowWise)
    .infer(infer)
    .grad(differentiate)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); });

AB_GRAD(fused_elemwise_activation)
    .doc("Gradients with respect to X and Y, summed over the axes on which an operand was broadcast.")
    .in("X", "as in the forward op")
    .in("Y", "as in the forward op")
    .in_optional("Out", "as in the forward op; ignored")
    .in_optional("IntermediateOut", "as in the forward op; ignored")
    .in("Out@GRAD", "like Out")
    .out("X@GRAD", "like X")
    .out("Y@GRAD", "like Y")
    .out_named_only("IntermediateOut@GRAD", "not supported")
    .infer([](InferContext& c) {
      form_of(c.op());
      check_same_dtype(c, "X", "Y");
      check_same_dtype(c, "X", "Out@GRAD");
      check_shape(c, "Out@GRAD", broadcast_shape(c.in("X").shape, c.in("Y").shape, c.attr<int32_t>("axis")));
      grad_as(c, "X@GRAD", "X", "Out@GRAD");
      grad_as(c, "Y@GRAD", "Y", "Y");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel { return Backward<T>(op); });

}  // namespace
}  // namespace anabranch::math::fused_elemwise_activation_op
