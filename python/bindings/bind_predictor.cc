// engine/predictor: a saved model that is run again and again.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "engine/predictor.h"

namespace anabranch::python {
namespace {

nb::list run(Predictor& self, const nb::list& values, bool numpy) {
  const auto& names = self.model().feeds;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < nb::len(values); ++i)
    inputs.push_back(feed_tensor(i < names.size() ? names[i] : "", values[i]));
  std::vector<Tensor> outputs(self.model().fetches.size());  // the caller keeps them
  {
    const Unlocked unlocked;
    self.run_into(inputs, outputs, check_signals);
  }
  nb::list out;
  for (Tensor& t : outputs) out.append(fetched_to_python(std::move(t), numpy));
  return out;
}

}  // namespace

void bind_predictor(nb::module_& m) {
  nb::class_<Predictor>(m, "Predictor", "A saved model, ready to run; one thread at a time.")
      .def(
          "__init__",
          [](Predictor* self, ir::ProgramRef program, std::shared_ptr<Scope> scope, std::vector<std::string> feeds,
             std::vector<std::string> fetches, int threads) {
            new (self) Predictor({std::move(program), std::move(scope), std::move(feeds), std::move(fetches)}, threads);
          },
          nb::arg("program"), nb::arg("scope"), nb::arg("feeds"), nb::arg("fetches"), nb::arg("threads"))
      .def("clone", &Predictor::clone)
      .def(
          "explain", [](Predictor& self) { return self.program().explain(); }, CallUnlocked())
      .def("run", &run, nb::arg("inputs"), nb::arg("numpy"));
}

}  // namespace anabranch::python
