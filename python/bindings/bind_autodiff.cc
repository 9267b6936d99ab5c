// autodiff/: gradients of programs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "autodiff/backward.h"
#include "bind.h"
#include "opdef/grad_context.h"
#include "opdef/op_def.h"

namespace anabranch::python {

namespace {

std::string unmarked(std::string name) {
  std::erase(name, kGradientMark);
  std::erase(name, kWrittenMark);
  return name;
}

// The gradient ops of one op, without a program. no_grad holds names of gradients that are not needed.
std::vector<ir::OpRef> op_gradients(const ir::Op& op, const ir::Block& block, const std::set<std::string>& no_grad) {
  const OpDef& def = find_op(op.type);
  if (!def.has_grad()) return {};
  if (def.forward()) {  // its gradient reads the shapes of variables
    for (const std::string& name : op.input_args()) {
      AB_CHECK(block.find_var_recursive(name), NotFound, "{}: the block has no variable {}", op.type, name);
    }
  }
  GradContext context(op, block, [&](const std::string& name) { return !no_grad.contains(ir::grad_name(name)); });
  def.run_grad(context);
  for (const auto& made : context.ops) {
    for (auto* slots : {&made->inputs, &made->outputs}) {
      for (auto& [slot, names] : *slots) {
        if (names.size() == 1 && names[0] == ir::kEmptyVar) names.clear();
        for (std::string& name : names) name = unmarked(std::move(name));
      }
    }
  }
  return context.ops;
}

}  // namespace

void bind_autodiff(nb::module_& m) {
  m.def(
      "append_backward",
      [](ir::Program& program, const std::string& loss, std::vector<std::string> parameters,
         std::set<std::string> no_grad, nb::object after_op, std::vector<std::string> checkpoints, int block) {
        BackwardOptions options{std::move(parameters), std::move(no_grad), std::move(checkpoints), block, {}};
        if (!after_op.is_none()) {
          options.after_op = [&after_op](ir::Block& block, const ir::Op&) { after_op(block.idx()); };
        }
        return append_backward(program, loss, options);
      },
      nb::arg("program"), nb::arg("loss"), nb::arg("parameters"), nb::arg("no_grad"), nb::arg("after_op") = nb::none(),
      nb::arg("checkpoints") = std::vector<std::string>{}, nb::arg("block") = 0,
      "Appends the gradient of a loss to its block; returns (parameter, gradient) names. after_op(block) is called "
      "after each op. "
      "What lies between checkpoints is computed again.");
  m.def("gradients", &gradients, nb::arg("program"), nb::arg("targets"), nb::arg("inputs"), nb::arg("target_grads"),
        nb::arg("no_grad"), nb::arg("block") = 0,
        "Names of the gradients of targets by inputs, empty where there is no influence.");
  m.def("op_gradients", &op_gradients, nb::arg("op"), nb::arg("block"), nb::arg("no_grad"),
        "The gradient ops of an op; no_grad holds names of gradients that are not needed.");
}

}  // namespace anabranch::python
