// Tables of unary functions, elementwise. A row gives Out of X (and of the op's attributes p), X@GRAD of X or Out and
// of Out@GRAD, and, where there is one, the vector loop for float32.
#pragma once
#include <vector>

#include "base/flags.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch.h"
#include "ops/kernels/wide_map.h"

namespace anabranch::math {

enum class GradOf { kX, kOut, kNeither };

struct FloatAttr {
  const char* name;
  float value;
  const char* doc;
};

// The derivative at v - X or Out, as grad_of says - made of ops.
using Slope = std::string (*)(second_order::Ops& o, const std::string& v);

// float32, with numbers p that attributes give.
using ParamLoop = void (*)(const float* x, const float* p, float* out, int64_t n);

struct Activation {
  const char *type, *doc, *source = "";
  GradOf grad_of;
  std::vector<const char*> ignores = {"use_mkldnn", "use_cudnn"};
  std::vector<FloatAttr> attrs = {};
  UnaryLoop loop = nullptr;           // float32 only
  BinaryLoop grad_loop = nullptr;     // of what grad_of names, and Out@GRAD
  ParamLoop param_loop = nullptr;     // of X and the op's attributes, in the place of loop
  const char* grad_lod = "Out@GRAD";  // whose sequences the gradient carries
  Slope slope = nullptr;              // the derivative as ops; null: it does not change but where it jumps
  bool fluid_slope = false;           // with FLAGS_exact_fluid a derivative of its own
};

inline constexpr size_t kMaxParams = 3;

template <class T> struct Params {
  T p[kMaxParams] = {};
  Params(const Activation& row, const KernelArgs& op) {
    for (size_t i = 0; i < row.attrs.size(); ++i) p[i] = static_cast<T>(op.attr<float>(row.attrs[i].name));
  }
};

inline device::NumbersOf numbers_of(const Activation& row) {
  device::NumbersOf numbers;
  for (size_t i = 0; i < row.attrs.size(); ++i) numbers.names[i] = row.attrs[i].name;
  return numbers;
}

// Whether the gradient's kernel for devices is another one now.
inline bool slopes_as_fluid(const Activation& row) { return row.fluid_slope && Flags::exact_fluid(); }

// As a step on devices: a function of these inputs.
template <class Name> auto activation_step(const Activation& row, std::vector<const char*> from, Name name) {
  return device_step([row, from, name](const KernelArgs& op, const std::string&) {
    DeviceStep step{name(row), {}};
    for (const char* slot : from) step.operands.push_back(op.in(slot).first);
    const Params<float> params(row, op);
    std::copy_n(params.p, kMaxParams, step.numbers.begin());
    return step;
  });
}

template <class Forward> TileOp activation_tile(const Activation& row, Forward forward) {
  if (row.loop) return tile_of("X", kMathGrain, row.loop);
  const auto make = [row, forward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, params = Params<float>(row, op), forward, loop = row.param_loop](
               const float* const* in, float* out, int64_t n) {
      if (loop) return loop(in[x], params.p, out, n);
      const float* from = in[x];
      in_wide_vectors([=, own = params] {
        const Params<float> numbers = own;  // which `out` cannot overlap
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(forward(from[i], numbers.p));
      });
    };
  };
  return {.make = make, .grain = kMathGrain};
}

template <class Forward> OpDef& declare_activation(const Activation& row, Forward forward) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).source(row.source).in("X", "[...] float").out("Out", "[...] as X").may_share("X", "Out");
  for (const FloatAttr& a : row.attrs) def.attr<float>(a.name, a.value, a.doc);
  for (const char* name : row.ignores) def.ignores({name});
  def.traits(kRowWise | kElementwise).tile(activation_tile(row, forward));
  def.infer([](InferContext& c) { c.same_as("Out", "X"); });
  using Slots = std::vector<std::string>;
  def.grad_reads(row.grad_of == GradOf::kX ? Slots{"X"} : Slots{},
                 row.grad_of == GradOf::kOut ? Slots{"Out"} : Slots{});
  def.cpu<float, double>([row, forward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In x = op.in("X");
    const Out out = op.out("Out");
    if constexpr (std::is_same_v<T, float>) {
      if (UnaryLoop loop = row.loop) {
        return [=](KernelContext& c) {
          run_loop(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), loop);
        };
      }
    }
    const Params<T> params(row, op);
    if constexpr (std::is_same_v<T, float>) {
      if (ParamLoop loop = row.param_loop) {
        return [=](KernelContext& c) {
          const float* from = c[x].data<T>();
          float* to = c[out].mutable_data<T>();
          c.parallel_for(c[x].numel(), kMathGrain,
                         [=](int64_t begin, int64_t end) { loop(from + begin, params.p, to + begin, end - begin); });
        };
      }
    }
    return [=](KernelContext& c) {
      wide_map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(),
               [=](T v) { return static_cast<T>(forward(v, params.p)); });
    };
  });
  def.device<float, double, float16, bfloat16>(device::map(row.type, numbers_of(row)));
  def.with(activation_step(row, {"X"}, [](const Activation& r) { return std::string(r.type); }));
  return def;
}

template <class Backward> TileOp activation_gradient_tile(const char* from, const Activation& row, Backward backward) {
  if (row.grad_loop) return tile_of(from, "Out@GRAD", kMathGrain, row.grad_loop);
  const auto make = [row, from, backward](const KernelArgs& op, const std::string&) -> TileLoop {
    return [v = op.in(from).first, dout = op.in("Out@GRAD").first, params = Params<float>(row, op), backward](
               const float* const* in, float* out, int64_t n) {
      const float *from = in[v], *dy = in[dout];
      in_wide_vectors([=, own = params] {
        const Params<float> numbers = own;
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(backward(from[i], dy[i], numbers.p));
      });
    };
  };
  return {.make = make, .grain = kMathGrain};
}

template <class Backward> void declare_activation_gradient(const Activation& row, Backward backward) {
  const char* from = row.grad_of == GradOf::kX ? "X" : row.grad_of == GradOf::kOut ? "Out" : "Out@GRAD";
  OpDef& def = declare_gradient(row.type, __FILE__);
  def.may_share("Out@GRAD", "X@GRAD")
      .grad_lod("X@GRAD", row.grad_lod)
      .tile(activation_gradient_tile(from, row, backward));
  if (row.slope) {
    def.grad(second_order::through([from, slope = row.slope](second_order::Ops& o) {
      o.is("X@GRAD", o.mul(o.in("Out@GRAD"), slope(o, o.in(from))));
    }));
  } else {
    def.grad(second_order::diagonal);
  }
  def.cpu<float, double>([row, from, backward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In v = op.in(from), dout = op.in("Out@GRAD");
    const Out dx = op.out("X@GRAD");
    if constexpr (std::is_same_v<T, float>) {
      if (BinaryLoop loop = row.grad_loop) {
        return [=](KernelContext& c) {
          run_loop(c, kMathGrain, c[v].numel(), c[v].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(), loop);
        };
      }
    }
    const Params<T> params(row, op);
    return [=](KernelContext& c) {
      wide_map(c, kMathGrain, c[v].numel(), c[v].data<T>(), c[dout].data<T>(), c[dx].mutable_data<T>(),
               [=](T a, T dy) { return static_cast<T>(backward(a, dy, params.p)); });
    };
  });
  def.device<float, double, float16, bfloat16>(DTypeFactory([row](DType dtype, const KernelArgs& op) {
    const std::string function = slopes_as_fluid(row) ? std::string(row.type) + "_as_fluid" : row.type;
    return device::map_grad(function, numbers_of(row))(dtype, op);
  }));
  def.with(activation_step(row, {from, "Out@GRAD"}, [](const Activation& r) {
    return std::string(r.type) + (slopes_as_fluid(r) ? "_as_fluid_grad" : "_grad");
  }));
}

template <class Forward, class Backward> OpDef& activation(const Activation& row, Forward forward, Backward backward) {
  OpDef& def = declare_activation(row, forward);
  declare_activation_gradient(row, backward);
  return def;
}

// By the functions of a struct of activation_functions.h.
template <class Fn> OpDef& activation(const Activation& row) {
  return activation(
      row, [](auto x, auto* p) { return Fn::forward(x, p); },
      [](auto x, auto dy, auto* p) { return Fn::backward(x, dy, p); });
}

// The few that take integers as well.
template <class Forward> void of_integers(OpDef& def, Forward forward) {
  def.cpu<int32_t, int64_t>([forward](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
      map(c, kMathGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(), forward);
    };
  });
}

}  // namespace anabranch::math
