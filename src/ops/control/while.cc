// A loop: the block runs as long as the condition holds. Where the program holds the gradient of the block, each turn
// keeps its variables for that; elsewhere all turns work on the same ones.
#include "ops/control/block_gradient.h"
#include "ops/control/turns.h"

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
    .doc("Runs sub_block again and again, as long as Condition holds.")
    .in_optional_list("X", "what the block reads from outside")
    .takes("X", Holds::kAnything)
    .in("Condition", "[1] bool; the block writes it")
    .out_optional_list("Out", "what the block writes outside")
    .out_optional("StepScopes", "orders the gradient after this op")
    .required_attr("sub_block", AttrType::kBlock, "the block")
    .attr<bool>("is_test", false, "nothing to do: variables are kept where a gradient needs them")
    .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "nothing to do: values of a block stay in it")
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
      const int64_t most = op.op().has_attr(kMostTurns) ? op.attr<int32_t>(kMostTurns) : 0;
      return [=](KernelContext& c) {
        if (c.wants(scopes)) c.value(scopes).as<std::shared_ptr<void>>();
        block->begin();
        for (int64_t turn = 0; holds(c, condition); ++turn) {
          check_turn(turn, most);
          const TurnContext inside(c, turn);
          try {
            block->run(inside);
          } catch (Error& e) {
            note_turn(e, turn);
            throw;
          }
        }
      };
    });

namespace {

void declare_while_grad() {
  OpDef& def = declare_op("while_grad", __FILE__);
  def.doc("X@GRAD: the gradient block, run once for each turn of the loop, the last one first.");
  declare_block_gradient(def, kSlots);
  def.in_optional("StepScopes", "orders this op after the forward op")
      .takes("StepScopes", Holds::kAnything)
      .attr<bool>("is_test", false, "as of the forward op")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "as of the forward op")
      .effects(kRepeats);
}
AB_OPS(declare_while_grad);

}  // namespace
}  // namespace anabranch::control::while_op
