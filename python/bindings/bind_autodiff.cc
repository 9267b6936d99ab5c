// autodiff/: gradients of programs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "autodiff/backward.h"
#include "bind.h"

namespace anabranch::python {

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
}

}  // namespace anabranch::python
