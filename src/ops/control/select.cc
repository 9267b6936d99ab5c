// Selects one of several variables by a mask: joins the branches of layers.cond.
#include "opdef/op_def.h"

namespace anabranch::control::select_op {
namespace {

int chosen(const KernelContext& c, In mask, int branches) {
  const Tensor& m = c[mask];
  AB_CHECK(m.numel() == 1, InvalidArgument, "Mask must have one element, got shape {}", m.shape().str());
  const int32_t k = *m.data<int32_t>();
  AB_CHECK(k >= 0 && k < branches, InvalidArgument, "Mask must be one of the {1} branches, got {0}", k, branches);
  return k;
}

}  // namespace

AB_OP(select_input)
    .doc("Out = X[Mask].")
    .in_list("X", "one variable per branch, all of one kind")
    .takes("X", Holds::kAnything)
    .in("Mask", "[1] int32, index of the branch")
    .out("Out", "like the selected X")
    .effects(kDynamic | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (!c.runtime()) c.same_as("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("select_output").in("X", g.dout("Out")).in("Mask", g.in("Mask")).out("Out", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), mask = op.in("Mask");
      const Out out = op.out("Out");
      return [=](KernelContext& c) { c.value(out).copy_from(c.value(x, chosen(c, mask, x.count))); };
    });

AB_OP(select_output)
    .doc("Out[Mask] = X; the other outputs keep their values.")
    .in("X", "any")
    .takes("X", Holds::kAnything)
    .in("Mask", "[1] int32, index of the output")
    .out_list("Out", "like X")
    .effects(kDynamic | kMaybeUnset | kKeepsOutputs)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      for (int i = 0; i < c.n_out("Out"); ++i) c.out("Out", i) = c.in("X");
    })
    .grad([](GradContext& g) {
      g.op("select_input").in("X", g.dout("Out")).in("Mask", g.in("Mask")).out("Out", g.din("X"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In x = op.in("X"), mask = op.in("Mask");
      const Out out = op.out("Out");
      return [=](KernelContext& c) {
        const int k = chosen(c, mask, out.count);
        if (c.needs(out, k)) c.value(out, k).copy_from(c.value(x));
      };
    });

}  // namespace anabranch::control::select_op
