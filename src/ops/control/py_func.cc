// Calls a user's function as an op or as the gradient of one.
#include <algorithm>

#include "core/callables.h"
#include "opdef/op_def.h"

namespace anabranch::control::py_func_op {
namespace {

const Tensor* made(const Value& value) {
  const auto* t = value.get<Tensor>();
  return t && t->initialized() ? t : nullptr;
}

Kernel call(const KernelArgs& op) {
  const Callable& function = find_callable(op.attr<int32_t>("forward_callable_id"));
  return [&function, x = op.in("X"), out = op.out("Out"), ins = std::vector<const Tensor*>(),
          outs = std::vector<Tensor*>()](KernelContext& c) mutable {
    ins.clear();
    outs.clear();
    for (int i = 0; i < x.count; ++i) ins.push_back(made(c.value(x, i)));
    for (int i = 0; i < out.count; ++i) outs.push_back(c.needs(out, i) ? &c.at(out, i) : nullptr);
    function(ins, outs);
  };
}

// Inputs of the user's gradient function: inputs and outputs, except those that the user skips, and the gradients of
// the outputs.
void differentiate(GradContext& g) {
  const auto backward = g.attr<int32_t>("backward_callable_id");
  if (backward < 0) return;
  const auto& skipped = g.attr<std::vector<std::string>>("backward_skip_vars");
  std::vector<std::string> reads;
  const auto add = [&](const std::vector<std::string>& names, const std::vector<std::string>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (std::find(skipped.begin(), skipped.end(), names[i]) == skipped.end()) reads.push_back(args[i]);
    }
  };
  add(g.forward().input("X"), g.in("X"));
  add(g.forward().output("Out"), g.out("Out"));
  for (const auto& name : g.dout("Out")) reads.push_back(name);
  g.op("py_func")
      .bare()
      .in("X", reads)
      .out("Out", g.din("X"))
      .attr("forward_callable_id", backward)
      .attr("backward_callable_id", int32_t{-1});
}

AB_OP(py_func)
    .doc("Out = f(X), where f is a function of the process, for the layer py_func one of Python.")
    .in_optional_list("X", "tensors")
    .takes("X", Holds::kAnything)
    .out_list("Out", "tensors; their shapes may differ from those that the program declares")
    .attr<int32_t>("forward_callable_id", 0, "id of the function")
    .attr<int32_t>("backward_callable_id", -1, "id of its gradient function; -1: the op has no gradient")
    .attr<std::vector<std::string>>("backward_skip_vars", {},
                                    "inputs and outputs that the gradient function does not take")
    .effects(kDynamic | kOrdered | kMaybeUnset)
    .infer([](InferContext&) {})
    .grad(differentiate)
    .cpu_any(call);

}  // namespace
}  // namespace anabranch::control::py_func_op
