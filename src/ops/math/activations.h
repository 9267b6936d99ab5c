// Tables of elementwise unary functions. A row defines Out from X (and the op's attributes p), X@GRAD from X or Out and
// Out@GRAD, and optionally the vector loop for float32.
#pragma once
#include <string>
#include <type_traits>
#include <vector>

#include "ops/declare/second_order.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/wide.h"

namespace anabranch::math {

enum class GradOf { kX, kOut, kNeither };

struct FloatAttr {
  const char* name;
  float value;
  const char* doc;
};

// The derivative at v - X or Out, as grad_of states - composed of ops.
using Slope = std::string (*)(second_order::Ops& o, const std::string& v);

// float32, with parameters p from attributes.
using ParamLoop = void (*)(const float* x, const float* p, float* out, int64_t n);
using ParamGradLoop = void (*)(const float* v, const float* dout, const float* p, float* dx, int64_t n);

struct Activation {
  const char *type, *doc, *source = "";
  GradOf grad_of;
  std::vector<const char*> ignores = {"use_mkldnn", "use_cudnn"};
  std::vector<FloatAttr> attrs = {};
  UnaryLoop loop = nullptr;                 // float32 only
  BinaryLoop grad_loop = nullptr;           // of the variable of grad_of, and Out@GRAD
  ParamLoop param_loop = nullptr;           // of X and the op's attributes, instead of loop
  ParamGradLoop param_grad_loop = nullptr;  // with the op's attributes, instead of grad_loop
  const char* grad_lod = "Out@GRAD";        // slot whose LoD the gradient takes
  Slope slope = nullptr;                    // the derivative as ops; null: zero wherever it exists
  bool fluid_slope = false;                 // FLAGS_exact_fluid selects a different derivative
  int64_t grain = kMathGrain;               // elements that are worth a task
};

inline constexpr size_t kMaxParams = 3;

// ---- loops: one function per type, so that kernels are made in one place. p: the op's attributes, in the row's order.

using MapRun = void (*)(const void* x, const float* p, void* out, int64_t n);
using MapGradRun = void (*)(const void* v, const void* dout, const float* p, void* dx, int64_t n);

// For both types; null if Activation provides the loop.
struct ActivationRuns {
  MapRun of_float, of_double;
  MapGradRun grad_of_float, grad_of_double;
};

// Attributes in the type of the computation.
template <class T> struct Params {
  T p[kMaxParams];
  explicit Params(const float* from) {
    for (size_t i = 0; i < kMaxParams; ++i) p[i] = static_cast<T>(from[i]);
  }
};

// Only float32 has loops for wider vectors.
template <class T, class Walk> void in_vectors_of(const Walk& walk) {
  if constexpr (std::is_same_v<T, float>) {
    in_wide_vectors(walk);
  } else {
    walk();
  }
}

template <class T, class Forward> void map_run(const void* x, const float* p, void* out, int64_t n) {
  in_vectors_of<T>([=, params = Params<T>(p)] {
    const Params<T> numbers = params;  // a local copy, which `out` cannot alias
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(Forward{}(from[i], numbers.p));
  });
}

template <class T, class Backward>
void map_grad_run(const void* v, const void* dout, const float* p, void* dx, int64_t n) {
  in_vectors_of<T>([=, params = Params<T>(p)] {
    const Params<T> numbers = params;
    const T *from = static_cast<const T*>(v), *dy = static_cast<const T*>(dout);
    T* to = static_cast<T*>(dx);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(Backward{}(from[i], dy[i], numbers.p));
  });
}

// ---- declarations

OpDef& declare_activation(const Activation& row, const ActivationRuns& runs);

// The loops that a row provides, so that no others are compiled.
enum class Gives { kNone, kForward, kBoth };

template <Gives kGives = Gives::kNone, class Forward, class Backward>
OpDef& activation(const Activation& row, Forward, Backward) {
  ActivationRuns runs{nullptr, &map_run<double, Forward>, nullptr, &map_grad_run<double, Backward>};
  if constexpr (kGives == Gives::kNone) runs.of_float = &map_run<float, Forward>;
  if constexpr (kGives != Gives::kBoth) runs.grad_of_float = &map_grad_run<float, Backward>;
  return declare_activation(row, runs);
}

// From the functions of a struct of activation_functions.h.
template <class Fn, Gives kGives = Gives::kNone> OpDef& activation(const Activation& row) {
  return activation<kGives>(
      row, [](auto x, auto* p) { return Fn::forward(x, p); },
      [](auto x, auto dy, auto* p) { return Fn::backward(x, dy, p); });
}

// The few that also accept integers.
void also_of(OpDef& def, DType dtype, MapRun run);

template <class Forward> void of_integers(OpDef& def, Forward) {
  const auto of = [](auto x, auto*) { return Forward{}(x); };
  also_of(def, DType::kInt32, &map_run<int32_t, decltype(of)>);
  also_of(def, DType::kInt64, &map_run<int64_t, decltype(of)>);
}

}  // namespace anabranch::math
