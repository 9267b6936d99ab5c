// Exponentials, powers, waves and steps on devices: "map/<op>" and "map_grad/<op>", attributes in the op's order.
#include "ops/math/activation_functions.h"
#include "ops/math/map_kernel.h"

namespace anabranch::math {

AB_MAP("sigmoid", Sigmoid);
AB_MAP("tanh", Tanh);
AB_MAP("exp", Exp);
AB_MAP("log", Log);
AB_MAP("log1p", Log1p);
AB_MAP("mish", Mish);
AB_MAP("softplus", Softplus);
AB_MAP("logsigmoid", LogSigmoid);
AB_MAP("tanh_shrink", TanhShrink);
AB_MAP("stanh", Stanh);
AB_MAP("sqrt", Sqrt);
AB_MAP("rsqrt", Rsqrt);
AB_MAP("square", Square);
AB_MAP("reciprocal", Reciprocal);
AB_MAP("abs", Abs);
AB_MAP("sin", Sin);
AB_MAP("cos", Cos);
AB_MAP("acos", Acos);
AB_MAP("asin", Asin);
AB_MAP("atan", Atan);
AB_MAP("erf", Erf);
AB_MAP("ceil", Ceil);
AB_MAP("floor", Floor);
AB_MAP("round", Round);

}  // namespace anabranch::math
