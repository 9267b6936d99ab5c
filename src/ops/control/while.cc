// A loop: the block runs while the condition holds. If the program has the gradient of the block, each iteration keeps
// its variables for it; otherwise all iterations reuse the same ones.
#include "ops/control/block_gradient.h"
#include "ops/control/iterations.h"

namespace anabranch::control::while_op {
namespace {

constexpr GradientSlots kSlots{"X", "Out", true};

bool holds(const KernelContext& c, In condition) {
  const Tensor& t = c[condition];
  AB_CHECK(t.numel() == 1 && t.dtype() == DType::kBool, InvalidArgument, "Condition must be one bool, got {} {}",
           dtype_name(t.dtype()), t.shape().str());
  return *t.data<bool>();
}

}  // namespace

AB_OP(while)
    .doc("Runs sub_block repeatedly while Condition is true.")
    .in_optional_list("X", "outer variables that the block reads")
    .takes("X", Holds::kAnything)
    .in("Condition", "[1] bool; the block writes it")
    .out_optional_list("Out", "outer variables that the block writes")
    .out_optional("StepScopes", "orders the gradient after this op")
    .required_attr("sub_block", AttrType::kBlock, "the block")
    .attr<bool>("is_test", false, "ignored: variables are kept if a gradient needs them")
    .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "ignored: values of a block stay in it")
    .effects(kDynamic | kRunsBlock | kMaybeUnset | kKeepsOutputs | kRepeats)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.out("StepScopes").kind = VarKind::kStepScopes; })
    .grad([](GradContext& g) {
      GradOp op = g.op("while_grad");
      fill_block_gradient(g, op, kSlots);
      op.in("StepScopes", g.out("StepScopes"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In condition = op.in("Condition");
      const Out scopes = op.out("StepScopes");
      const auto block = op.block("sub_block");
      const int64_t most = op.op().has_attr(kMaxIterations) ? op.attr<int32_t>(kMaxIterations) : 0;
      return [=](KernelContext& c) {
        if (c.needs(scopes)) c.value(scopes).as<std::shared_ptr<void>>();
        block->begin();
        for (int64_t iteration = 0; holds(c, condition); ++iteration) {
          check_iteration(iteration, most);
          const IterationContext inside(c, iteration);
          try {
            block->run(inside);
          } catch (Error& e) {
            note_iteration(e, iteration);
            throw;
          }
        }
      };
    });

namespace {

void declare_while_grad() {
  OpDef& def = declare_op("while_grad", __FILE__);
  def.doc(
      "X@GRAD = the result of the gradient block, which runs once per iteration of the loop, last iteration first.");
  declare_block_gradient(def, kSlots);
  def.in_optional("StepScopes", "orders this op after the forward op")
      .takes("StepScopes", Holds::kAnything)
      .attr<bool>("is_test", false, "as in the forward op")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "as in the forward op")
      .effects(kRepeats);
}
AB_OPS(declare_while_grad);

}  // namespace
}  // namespace anabranch::control::while_op
