// THE list of elementwise functions on devices: defines their kernels ("map/<name>", "binary/<name>" and their
// gradients) and the steps of fused_elementwise. The name, which is that of the op if only one op has the function, and
// the struct of activation_functions.h, rectifier_functions.h, gelu_functions.h or arithmetic_functions.h.
#pragma once
#include <cstdint>
#include <string_view>

// ---- unary, with gradients

#define AB_WAVES(M)            \
  M("sigmoid", Sigmoid)        \
  M("tanh", Tanh)              \
  M("exp", Exp)                \
  M("log", Log)                \
  M("log1p", Log1p)            \
  M("mish", Mish)              \
  M("softplus", Softplus)      \
  M("logsigmoid", LogSigmoid)  \
  M("tanh_shrink", TanhShrink) \
  M("stanh", Stanh)            \
  M("sqrt", Sqrt)              \
  M("rsqrt", Rsqrt)            \
  M("square", Square)          \
  M("reciprocal", Reciprocal)  \
  M("abs", Abs)                \
  M("sin", Sin)                \
  M("cos", Cos)                \
  M("acos", Acos)              \
  M("asin", Asin)              \
  M("atan", Atan)              \
  M("erf", Erf)                \
  M("ceil", Ceil)              \
  M("floor", Floor)            \
  M("round", Round)

#define AB_GATES(M)                      \
  M("relu", Relu)                        \
  M("relu6", Relu6)                      \
  M("brelu", Brelu)                      \
  M("leaky_relu", LeakyRelu)             \
  M("elu", Elu)                          \
  M("selu", Selu)                        \
  M("thresholded_relu", ThresholdedRelu) \
  M("hard_shrink", HardShrink)           \
  M("softshrink", SoftShrink)            \
  M("softsign", Softsign)                \
  M("swish", Swish)                      \
  M("hard_sigmoid", HardSigmoid)         \
  M("hard_swish", HardSwish)             \
  M("soft_relu", SoftRelu)               \
  M("gelu", Gelu)                        \
  M("gelu_tanh", GeluTanh)

// ---- binary, with gradients

#define AB_PAIRS(M) \
  M("add", Add)     \
  M("sub", Sub)     \
  M("mul", Mul)     \
  M("div", Div)     \
  M("pow", Pow)     \
  M("max", Max)     \
  M("min", Min)

// ---- steps of fused_elementwise

// The operation of a step: One(F), Named(name, F) for the functions above, Grad(name, F) and Grads(name, F) for the
// gradients of unary and binary functions. The most frequent ones come first: a GPU finds them with fewer comparisons.
// clang-format off
#define AB_STEP_CODES(One, Named, Grad, Grads)             \
  One(Scale)                                               \
  AB_PAIRS(Named) AB_GATES(Named) AB_WAVES(Named)          \
  AB_GATES(Grad) AB_WAVES(Grad) AB_PAIRS(Grads)            \
  One(HardSwishAsFluidGrad) One(Mod) One(Clip) One(ClipGrad) One(Copy)
// clang-format on

namespace anabranch::math {

// Operands: x; for a gradient those of Map::backward, or d, x, y and the result.
// clang-format off
enum class StepCode : uint8_t {
#define AB_ONE(F) k##F,
#define AB_NAMED(name, F) k##F,
#define AB_OF_ONE(name, F) k##F##Grad,
#define AB_OF_TWO(name, F) k##F##Dx, k##F##Dy,
  AB_STEP_CODES(AB_ONE, AB_NAMED, AB_OF_ONE, AB_OF_TWO)
#undef AB_ONE
#undef AB_NAMED
#undef AB_OF_ONE
#undef AB_OF_TWO
};
// clang-format on
inline constexpr StepCode kLastOfMost = StepCode::kMul;

struct NamedStep {
  std::string_view name;
  StepCode code;
};

// "relu", "relu_grad"; "add", "add_dx", "add_dy".
// clang-format off
inline constexpr NamedStep kSteps[] = {
#define AB_NAMES(name, F) {name, StepCode::k##F}, {name "_grad", StepCode::k##F##Grad},
  AB_WAVES(AB_NAMES) AB_GATES(AB_NAMES)
#undef AB_NAMES
#define AB_NAMES(name, F) {name, StepCode::k##F}, {name "_dx", StepCode::k##F##Dx}, {name "_dy", StepCode::k##F##Dy},
  AB_PAIRS(AB_NAMES)
#undef AB_NAMES
  {"hard_swish_as_fluid_grad", StepCode::kHardSwishAsFluidGrad},
  {"mod", StepCode::kMod},
  {"scale", StepCode::kScale},
  {"clip", StepCode::kClip},
  {"clip_grad", StepCode::kClipGrad},
};
// clang-format on

}  // namespace anabranch::math
