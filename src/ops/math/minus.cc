#include "ops/declare/declare.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/flat_loop.h"

namespace anabranch::math::minus_op {
namespace {

AB_OP(minus)
    .doc("Out = X - Y, for operands of one shape.")
    .in("X", "[...] float")
    .in("Y", "[...] like X")
    .out("Out", "[...] like X")
    .may_share("X", "Out")
    .infer([](InferContext& c) {
      check_same(c, "X", "Y");
      c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      for (const auto& [slot, factor] : {std::pair{"X", 1.0f}, {"Y", -1.0f}}) {
        if (!g.needs_din(slot)) continue;
        g.op("scale").bare().in("X", g.dout("Out")).out("Out", g.din(slot)).attr("scale", factor);
      }
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
        map(c, kCheapGrain, c[x].numel(), c[x].data<T>(), c[y].data<T>(), c[out].mutable_data<T>(),
            [](T a, T b) { return a - b; });
      };
    })
    .device<float, double, float16, bfloat16>(device::pairs("binary/sub"));

}  // namespace
}  // namespace anabranch::math::minus_op
