#include "ops/math/step_by_step.h"

#include "opdef/op_def.h"

namespace anabranch::math {

StepByStep::StepByStep(const TileProgram& program, DType dtype, Place place)
    : inputs_(program.inputs()), outs_(program.outs()), results_(program.steps().size()) {
  for (size_t i = 0; i < program.steps().size(); ++i) {
    const ir::OpRef op = program.op(static_cast<int>(i));
    const OpDef& def = find_op(op->type);
    const auto& args = program.steps()[i].args;
    const KernelFactory& kernel = place.on_host() ? def.kernel(dtype) : def.device_kernel(dtype);
    steps_.push_back({RuntimeShapes(def, op, {.from = place, .to = place}),
                      kernel(KernelArgs(def, *op, dtype, {})),
                      {args.begin(), args.end()}});
  }
}

void StepByStep::run(const KernelContext& outer) {
  if (outer.call != KernelContext::Call::kQueued) {
    KernelContext c = outer;
    run_steps(outer, c);
    for (size_t k = 0; k < outs_.size(); ++k) {
      outer.outs[k]->as<Tensor>().copy_from(results_[static_cast<size_t>(outs_[k])].tensor());
    }
    return;
  }
  const DeviceContext& queued = DeviceContext::of(outer);
  DeviceContext c = queued;
  run_steps(outer, c);
  for (size_t k = 0; k < outs_.size(); ++k) {
    queued.copy(outer.outs[k]->as<Tensor>(), results_[static_cast<size_t>(outs_[k])].tensor());
  }
}

void StepByStep::run_steps(const KernelContext& outer, KernelContext& c) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    Value* ins[fused::kMaxArgs];
    for (size_t k = 0; k < steps_[i].args.size(); ++k) {
      const int a = steps_[i].args[k];
      ins[k] = a < inputs_ ? outer.ins[a] : &results_[static_cast<size_t>(a - inputs_)];
    }
    Value* out = &results_[i];
    c.ins = ins;
    c.outs = &out;
    steps_[i].shapes.refresh(ins, &out);
    steps_[i].kernel(c);
  }
}

}  // namespace anabranch::math
