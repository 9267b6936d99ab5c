// engine/predictor: a saved model that runs repeatedly.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "core/host_copy.h"
#include "engine/predictor.h"
#include "fetched_array.h"

namespace anabranch::python {
namespace {

// A caller's handle of a predictor: the engine's object, and arrays over its outputs.
class Caller {
 public:
  explicit Caller(std::unique_ptr<Predictor> predictor)
      : predictor_(std::move(predictor)), windows_(predictor_->model().fetches.size()) {}

  Caller* clone() const { return new Caller(predictor_->clone()); }
  std::string explain() { return predictor_->program().explain(); }

  nb::list run(const nb::list& values, bool numpy) {
    const auto& names = predictor_->model().feeds;
    std::vector<Tensor> inputs(nb::len(values));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (view_array(values[i], &inputs[i])) continue;
      inputs[i] = on_host(feed_tensor(i < names.size() ? names[i] : "", values[i]));
    }
    nb::list out;
    {
      Unlocked unlocked;
      predictor_->run_and_show(inputs, check_signals, [&](const std::vector<const Tensor*>& shown) {
        unlocked.lock();
        for (size_t i = 0; i < shown.size(); ++i) out.append(to_python(*shown[i], i, numpy));
      });
    }
    return out;
  }

 private:
  nb::object to_python(const Tensor& t, size_t i, bool numpy) {
    if (numpy && t.contiguous() && t.lod().empty()) return windows_[i].copy(t);
    Tensor copy;
    copy.copy_from(t);
    return fetched_to_python(std::move(copy), numpy);
  }

  std::unique_ptr<Predictor> predictor_;
  std::vector<FetchedArray> windows_;
};

}  // namespace

void bind_predictor(nb::module_& m) {
  nb::class_<Caller>(m, "Predictor", "A saved model, ready to run; one thread at a time.")
      .def(
          "__init__",
          [](Caller* self, ir::ProgramRef program, std::shared_ptr<Scope> scope, std::vector<std::string> feeds,
             std::vector<std::string> fetches, int threads) {
            new (self) Caller(std::make_unique<Predictor>(
                Model{std::move(program), std::move(scope), std::move(feeds), std::move(fetches)}, threads));
          },
          nb::arg("program"), nb::arg("scope"), nb::arg("feeds"), nb::arg("fetches"), nb::arg("threads"))
      .def("clone", &Caller::clone, nb::rv_policy::take_ownership)
      .def("explain", &Caller::explain, CallUnlocked())
      .def("run", &Caller::run, nb::arg("inputs"), nb::arg("numpy"));
}

}  // namespace anabranch::python
