// Choosing between variables by a mask: what joins the branches of layers.cond.
#include "opdef/op_def.h"

namespace anabranch::control::select_op {
namespace {

int chosen(const KernelContext& c, In mask, int branches) {
  const Tensor& m = c[mask];
  AB_CHECK(m.numel() == 1, InvalidArgument, "Mask has shape {}, expected one element", m.shape().str());
  const int32_t k = *m.data<int32_t>();
  AB_CHECK(k >= 0 && k < branches, InvalidArgument, "Mask is {}, there are {} branches", k, branches);
  return k;
}

}  // namespace

AB_OP(select_input)
    .doc("Out = X[Mask].")
    .in_list("X", "branches, alike in kind")
    .takes("X", Holds::kAnything)
    .in("Mask", "[1] int32, which branch")
    .out("Out", "as the chosen X")
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
    .doc("Out[Mask] = X; the other outputs keep what they hold.")
    .in("X", "any")
    .takes("X", Holds::kAnything)
    .in("Mask", "[1] int32, which output")
    .out_list("Out", "as X")
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
        if (c.wants(out, k)) c.value(out, k).copy_from(c.value(x));
      };
    });

}  // namespace anabranch::control::select_op
