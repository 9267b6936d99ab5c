// A block that runs when its condition holds. Its gradient runs the gradient block when the forward block ran, and
// gives zeros otherwise. The values that the forward block computed stay in it until the next step, so the variable
// `Scope` carries nothing: it orders the gradient after the forward op.
#include <cstring>

#include "opdef/op_def.h"

namespace anabranch::control {
namespace {

bool holds(const KernelContext& c, In cond, bool scalar) {
  if (!scalar) {  // "is there any row": the mask of a row-wise if-else
    for (int i = 0; i < cond.count; ++i) {
      if (c.at(cond, i).numel() == 0) return false;
    }
    return true;
  }
  const Tensor& t = c.at(cond, 0);
  AB_CHECK(t.numel() == 1, InvalidArgument, "the condition has shape {}, expected one element", t.shape().str());
  return *t.data<bool>();
}

void zero_like(const Value& like, Value& out) {
  if (const auto* t = like.get<Tensor>()) {
    Tensor& z = out.as<Tensor>();
    z.resize(t->shape(), t->dtype());
    z.set_lod(t->lod_ref());
    std::memset(z.mutable_raw(), 0, z.bytes());
  } else {
    auto& z = out.as<TensorArray>();
    z.clear();
  }
}

}  // namespace

AB_OP(conditional_block)
    .doc("Runs sub_block when Cond holds (a scalar condition), or when every Cond has rows.")
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
    .grad([](GradContext& g) {
      g.op("conditional_block_grad")
          .in("Cond", g.in("Cond"))
          .in("Input", g.in("Input"))
          .in("Out", g.out("Out"))
          .in("Out@GRAD", g.dout("Out"))
          .in("Scope", g.out("Scope"))
          .out("Input@GRAD", g.din("Input"));
    })
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In cond = op.in("Cond");
      const Out scope = op.out("Scope");
      const bool scalar = op.attr<bool>("is_scalar_condition");
      const auto block = op.block("sub_block");
      return [=](KernelContext& c) {
        if (c.wants(scope)) c.value(scope).as<std::shared_ptr<void>>();
        if (holds(c, cond, scalar)) block->run(c);
      };
    });

AB_OP(conditional_block_grad)
    .doc("Input@GRAD: what the gradient block computed, or zeros when the block did not run.")
    .in_list("Cond", "as of the forward op")
    .in_optional_list("Input", "as of the forward op")
    .takes("Input", Holds::kAnything)
    .in_optional_list("Out", "what the block wrote, as in Fluid's files; the gradient block names what it needs of it")
    .takes("Out", Holds::kAnything)
    .in_optional_list("Out@GRAD", "gradients of what the block wrote")
    .takes("Out@GRAD", Holds::kAnything)
    .in_optional("Scope", "orders this op after the forward op")
    .takes("Scope", Holds::kAnything)
    .out_list("Input@GRAD", "gradients of what the block read")
    .required_attr("sub_block", AttrType::kBlock, "the gradient block")
    .attr<bool>("is_scalar_condition", false, "Cond is one truth value")
    .effects(kDynamic | kRunsBlock | kMaybeUnset)
    .traits(kOnlyComputes)
    .infer([](InferContext& c) {
      if (c.runtime()) return;
      for (int i = 0; i < c.n_out("Input@GRAD") && i < c.n_in("Input"); ++i) c.out("Input@GRAD", i) = c.in("Input", i);
    })
    .no_grad("second derivatives through control flow are not offered")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const In cond = op.in("Cond"), input = op.in("Input");
      const Out dinput = op.out("Input@GRAD");
      const bool scalar = op.attr<bool>("is_scalar_condition");
      const auto block = op.block("sub_block");
      // The gradient inside the block, by input: outside it may be one part of a sum, under another name.
      std::vector<Value*> inner;
      for (const auto& name : op.op().input("Input")) inner.push_back(block->find(ir::grad_name(name)));
      return [=](KernelContext& c) {
        const bool ran = holds(c, cond, scalar);
        if (ran) block->run(c);
        for (int i = 0; i < dinput.count; ++i) {
          if (!c.wants(dinput, i)) continue;
          if (ran && inner[i] && inner[i]->initialized()) {
            c.value(dinput, i).copy_from(*inner[i]);
          } else if (!ran || inner[i]) {
            zero_like(c.value(input, i), c.value(dinput, i));
          }
        }
      };
    });

}  // namespace anabranch::control
