// Adds a gradient block's contribution to the sum that its iterations carry along (opdef/sums_of_iterations.h).
#include "ops/control/add_up.h"

namespace anabranch::control::add_to_sum_op {
namespace {

AB_OP(add_to_sum)
    .doc(
        "Out += X[0], then X[1], ...; concatenates the rows if all are sparse. The first iteration starts from the "
        "gradient computed before the loop.")
    .in_list("X", "tensors or sparse rows of one shape")
    .takes("X", Holds::kAnything)
    .out("Out", "like X")
    .effects(kDynamic | kKeepsOutputs)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (!c.runtime()) c.out("Out") = c.in("X");
    })
    .no_grad("second derivatives through control flow are not supported")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        for (int i = 0; i < x.count; ++i) add_part(c, c.value(x, i), c.value(out));
      };
    });

}  // namespace
}  // namespace anabranch::control::add_to_sum_op
