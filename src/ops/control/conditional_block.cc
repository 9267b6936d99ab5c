// A block that runs if its condition holds. The gradient op runs the gradient block if the forward block ran, and gives
// zeros otherwise. Values computed by the forward block stay in it until the next step, so the variable `Scope` is
// empty: it only orders the gradient after the forward op.
#include "ops/control/block_gradient.h"

namespace anabranch::control::conditional_block_op {
namespace {

bool holds(const KernelContext& c, In cond) {
  const Tensor& t = c.at(cond, 0);
  AB_CHECK(t.numel() == 1, InvalidArgument, "the condition must have one element, got shape {}", t.shape().str());
  return *t.data<bool>();
}

// A branch of a row-wise if-else runs if all of its inputs have rows.
bool has_rows(const KernelContext& c, In reads) {
  for (int i = 0; i < reads.count; ++i) {
    const auto* t = c.value(reads, i).get<Tensor>();
    if (t && t->numel() == 0) return false;
  }
  return true;
}

constexpr GradientSlots kSlots{"Input", "Out"};

}  // namespace

namespace {

// Two ops share this: conditional_block, and conditional_block_infer without a gradient for inference programs.
OpDef& declare_branch(const char* type) {
  return declare_op(type, __FILE__)
      .doc("Runs sub_block if Cond is true (a scalar condition), or if all of its inputs have rows.")
      .in_list("Cond", "[1] bool, or the masks of a row-wise condition")
      .in_optional_list("Input", "outer variables that the block reads")
      .takes("Input", Holds::kAnything)
      .out_list("Out", "outer variables that the block writes")
      .out_optional("Scope", "orders the gradient after this op")
      .required_attr("sub_block", AttrType::kBlock, "the block")
      .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "ignored: values of a block stay in it")
      .effects(kDynamic | kRunsBlock | kMaybeUnset | kKeepsOutputs)
      .traits(kOnlyComputes)
      .infer([](InferContext& c) { c.out("Scope").kind = VarKind::kStepScopes; })
      .cpu_any([](const KernelArgs& op) -> Kernel {
        const In cond = op.in("Cond"), reads = op.in("Input");
        const Out scope = op.out("Scope");
        const bool scalar = op.attr<bool>("is_scalar_condition");
        const auto block = op.block("sub_block");
        return [=](KernelContext& c) {
          if (c.needs(scope)) c.value(scope).as<std::shared_ptr<void>>();
          block->begin();
          if (scalar ? holds(c, cond) : has_rows(c, reads)) block->run(c);
        };
      });
}

void declare_branches() {
  declare_branch("conditional_block").grad([](GradContext& g) {
    GradOp op = g.op("conditional_block_grad");
    fill_block_gradient(g, op, kSlots);
    op.in("Cond", g.in("Cond")).in("Scope", g.out("Scope"));
  });
  declare_branch("conditional_block_infer").no_grad("it is for inference; conditional_block has a gradient");
}
AB_OPS(declare_branches);

void declare_conditional_block_grad() {
  OpDef& def = declare_op("conditional_block_grad", __FILE__);
  def.doc("Input@GRAD = the result of the gradient block, or zeros if the block did not run.")
      .in_optional_list("Cond", "as in the forward op; the activation frame records whether the block ran");
  declare_block_gradient(def, kSlots);
  def.in_optional("Scope", "orders this op after the forward op")
      .takes("Scope", Holds::kAnything)
      .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "as in the forward op");
}
AB_OPS(declare_conditional_block_grad);

}  // namespace
}  // namespace anabranch::control::conditional_block_op
