// Increments the counter of a loop or of a schedule.
#include "opdef/op_def.h"
#include "ops/device/launch_math.h"

namespace anabranch::math::increment_op {
namespace {

AB_OP(increment)
    .doc("Out = X + step, for a single number.")
    .in("X", "[1] numbers")
    .out("Out", "[1] like X")
    .may_share("X", "Out")
    .updates("X", "Out")
    .attr<float>("step", 1.0f, "increment; truncated if X is an integer")
    .merges(StateMerge::kSum)
    .infer([](InferContext& c) {
      const int64_t n = c.in("X").shape.numel();
      AB_CHECK(n == 1 || n == kUnknown, ShapeMismatch, "X must have one element, got {}", c.in("X").shape.str());
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {  // a counter of a loop, in reverse
      g.op("increment").in("X", g.out("Out")).out("Out", g.in("X")).attr("step", -g.attr<float>("step"));
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out"), step = static_cast<T>(op.attr<float>("step"))](KernelContext& c) {
        *c[out].mutable_data<T>() = *c[x].data<T>() + step;
      };
    })
    .device<float, double, float16, bfloat16, int32_t, int64_t>([]<class T>(TypeTag<T>,
                                                                            const KernelArgs& op) -> Kernel {
      const auto numbers = [step = static_cast<device::Compute<T>>(op.attr<float>("step"))](const KernelContext&,
                                                                                            device::ScalarArgs& a) {
        device::put(a, 0, device::Compute<T>{1});
        device::put(a, 1, step);
        a.flags = 1;
      };
      return device::scalar<T>("scale", op.in("X"), op.out("Out"), numbers);
    });

}  // namespace
}  // namespace anabranch::math::increment_op
