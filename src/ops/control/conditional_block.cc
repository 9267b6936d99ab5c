// A block that runs when its condition holds. Its gradient runs the gradient block when the forward block ran, and
// gives zeros otherwise. The values that the forward block computed stay in it until the next step, so the variable
// `Scope` carries nothing: it orders the gradient after the forward op.
#include "ops/control/block_gradient.h"

namespace anabranch::control::conditional_block_op {
namespace {

bool holds(const KernelContext& c, In cond) {
  const Tensor& t = c.at(cond, 0);
  AB_CHECK(t.numel() == 1, InvalidArgument, "the condition has shape {}, expected one element", t.shape().str());
  return *t.data<bool>();
}

// "Is there any row": a side of a row-wise if-else runs when nothing that it reads is empty.
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

// With and without a gradient: programs for inference hold the second.
OpDef& declare_branch(const char* type) {
  return declare_op(type, __FILE__)
      .doc("Runs sub_block when Cond holds (a scalar condition), or when everything that it reads has rows.")
      .in_list("Cond", "[1] bool, or the masks of a row-wise condition")
      .in_optional_list("Input", "what the block reads from outside")
      .takes("Input", Holds::kAnything)
      .out_list("Out", "what the block writes outside")
      .out_optional("Scope", "orders the gradient after this op")
      .required_attr("sub_block", AttrType::kBlock, "the block")
      .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "nothing to do: values of a block stay in it")
      .effects(kDynamic | kRunsBlock | kMaybeUnset | kKeepsOutputs)
      .traits(kOnlyComputes)
      .infer([](InferContext& c) { c.out("Scope").kind = VarKind::kStepScopes; })
      .cpu_any([](const KernelArgs& op) -> Kernel {
        const In cond = op.in("Cond"), reads = op.in("Input");
        const Out scope = op.out("Scope");
        const bool scalar = op.attr<bool>("is_scalar_condition");
        const auto block = op.block("sub_block");
        return [=](KernelContext& c) {
          if (c.wants(scope)) c.value(scope).as<std::shared_ptr<void>>();
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
  declare_branch("conditional_block_infer").no_grad("of programs for inference; conditional_block has one");
}
AB_OPS(declare_branches);

void declare_conditional_block_grad() {
  OpDef& def = declare_op("conditional_block_grad", __FILE__);
  def.doc("Input@GRAD: what the gradient block computed, or zeros when the block did not run.")
      .in_optional_list("Cond", "as of the forward op; whether the block ran is known by its frame");
  declare_block_gradient(def, kSlots);
  def.in_optional("Scope", "orders this op after the forward op")
      .takes("Scope", Holds::kAnything)
      .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
      .attr<std::vector<std::string>>("skip_eager_deletion_vars", {}, "as of the forward op");
}
AB_OPS(declare_conditional_block_grad);

}  // namespace
}  // namespace anabranch::control::conditional_block_op
