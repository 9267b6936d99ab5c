// conditional_block as inference programs of 1.8.5 hold it: nothing of a run is kept for a gradient.
#include "ops/declare/declare.h"

namespace anabranch::control {
namespace {

constexpr const char* kWithGradient = "conditional_block";

AB_OP(conditional_block_infer)
    .doc("Runs sub_block when Cond holds (a scalar condition), or when every Cond has rows.")
    .in_list("Cond", "[1] bool, or the masks of a row-wise condition")
    .in_optional_list("Input", "what the block reads from outside")
    .takes("Input", Holds::kAnything)
    .out_list("Out", "what the block writes outside")
    .out_optional("Scope", "not read")
    .required_attr("sub_block", AttrType::kBlock, "the block")
    .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
    .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "nothing to do: values of a block stay in it")
    .effects(kDynamic | kRunsBlock | kMaybeUnset | kKeepsOutputs)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.out("Scope").kind = VarKind::kStepScopes; })
    .no_grad("made for inference, of programs that were trained before")
    .cpu_any([](const KernelArgs& op) { return find_op(kWithGradient).kernel(DType::kFloat32)(op); });

}  // namespace
}  // namespace anabranch::control
