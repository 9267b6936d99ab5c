#include "opdef/op_def.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/wide_map.h"
#include "ops/math/element_functions.h"

namespace anabranch::math::sign_op {
namespace {

AB_OP(sign)
    .doc("Out = -1, 0 or 1 for negative, zero or positive X, elementwise.")
    .in("X", "[...] float")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .grad([](GradContext& g) {
      g.op("scale").bare().in("X", g.dout("Out")).out("Out", g.din("X")).attr("scale", 0.0f);
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        wide_map(c, kCheapGrain, c[x].numel(), c[x].data<T>(), c[out].mutable_data<T>(),
                 [](T v) { return sign_of(v); });
      };
    })
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return device::scalar<T>("sign", op.in("X"), op.out("Out"), [](const KernelContext&, device::ScalarArgs&) {});
    });

}  // namespace
}  // namespace anabranch::math::sign_op
