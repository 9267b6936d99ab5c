// core/callables: Python functions that programs call.
#include "core/callables.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/float_mode.h"
#include "base/user_error.h"
#include "bind.h"

namespace anabranch::python {
namespace {

// By number; programs that name a function may run until the process exits. Accessed only while holding the GIL.
std::vector<nb::object>& kept() {
  static auto* const functions = new std::vector<nb::object>;
  return *functions;
}

nb::object copy_of(const Tensor* tensor) {
  if (!tensor) return nb::none();
  TensorRef copy;
  copy.own.copy_from(*tensor);
  return nb::cast(std::move(copy));
}

// The function's result for one output: an array, or a LoDTensor.
void take(nb::handle result, Tensor* out) {
  if (nb::isinstance<TensorRef>(result)) {
    out->copy_from(nb::cast<TensorRef&>(result).get());
    return;
  }
  out->copy_from(borrow_array(result));
  out->set_lod(LoDRef());
}

void call(size_t place, const std::vector<const Tensor*>& ins, const std::vector<Tensor*>& outs) {
  const Locked locked;
  const InFloatMode mode(float_mode_of_callables());
  AB_CHECK(place < kept().size(), Unavailable, "the process ends");
  const nb::object function = kept()[place];
  nb::list args;
  for (const Tensor* in : ins) args.append(copy_of(in));
  try {
    const nb::object results = function(args, outs.size());
    for (size_t i = 0; i < outs.size(); ++i) {
      const nb::object result = results[i];
      if (outs[i] && !result.is_none()) take(result, outs[i]);
    }
  } catch (const nb::python_error&) {
    throw UserError(std::current_exception());
  }
}

}  // namespace

void bind_callables(nb::module_& m) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { kept().clear(); }));
  m.def(
      "add_callable",
      [](nb::object function) {
        kept().push_back(std::move(function));
        return add_callable([place = kept().size() - 1](const auto& ins, const auto& outs) { call(place, ins, outs); });
      },
      nb::arg("function"),
      "Gives a function(list of LoDTensor, number of outputs) -> list of arrays a number that py_func names it by.");
}

}  // namespace anabranch::python
