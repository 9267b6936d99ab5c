// engine/predictor: a saved model that runs repeatedly.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "bind.h"
#include "core/host_copy.h"
#include "engine/followed_model.h"
#include "engine/predictor.h"
#include "fetched_array.h"
#include "row_values.h"

namespace anabranch::python {
namespace {

// A caller's handle of a predictor: the engine's object, and arrays over its outputs.
class Caller {
 public:
  explicit Caller(std::unique_ptr<Predictor> predictor)
      : predictor_(std::move(predictor)), windows_(predictor_->model().fetches.size()) {}

  RowReader* row_reader() const { return new RowReader(row_inputs(predictor_->model())); }
  Caller* clone() const { return new Caller(predictor_->clone()); }
  void follow(std::shared_ptr<FollowedModel> followed) { predictor_->follow(std::move(followed)); }
  int64_t version() const { return predictor_->version(); }
  std::string explain() { return predictor_->program().explain(); }

  nb::list run(const nb::list& values, bool numpy) {
    const auto& names = predictor_->model().feeds;
    std::vector<Tensor> inputs(nb::len(values));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (view_array(values[i], &inputs[i])) continue;
      inputs[i] = on_host(feed_tensor(i < names.size() ? names[i] : "", values[i]));
    }
    return run_tensors(inputs, numpy);
  }

  // A model of raw rows.
  nb::list run_rows(RowReader& reader, nb::handle rows, bool numpy) {
    reader.read(rows);
    AB_CHECK(reader.inputs().rows() > 0, InvalidArgument, "there must be at least one row, got none");
    return run_tensors(reader.inputs().tensors(), numpy);
  }

 private:
  nb::list run_tensors(std::span<const Tensor> inputs, bool numpy) {
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

  nb::object to_python(const Tensor& t, size_t i, bool numpy) {
    if (numpy && t.contiguous() && t.lod().empty()) return windows_[i].copy(t);
    Tensor copy;
    copy.copy_from(t);
    return fetched_to_python(std::move(copy), numpy);
  }

  std::unique_ptr<Predictor> predictor_;
  std::vector<FetchedArray> windows_;
};

void switch_to(
    FollowedModel& followed, int64_t version, Scope& fresh, const std::vector<std::string>& names,
    const std::vector<std::pair<std::shared_ptr<sparse::GrowableTable>, std::shared_ptr<sparse::GrowableTable>>>&
        layers) {
  std::vector<FollowedModel::Layer> all;
  for (const auto& [table, changes] : layers) all.push_back({table, changes});
  followed.switch_to(version, fresh, names, std::move(all));
}

}  // namespace

void bind_predictor(nb::module_& m) {
  nb::class_<FollowedModel>(m, "FollowedModel", "Values of a scope that are exchanged together, between runs.")
      .def(nb::init<std::shared_ptr<Scope>, int64_t>(), nb::arg("scope"), nb::arg("version") = 0)
      .def("switch_to", &switch_to, nb::arg("version"), nb::arg("fresh"), nb::arg("names"), nb::arg("layers"),
           CallUnlocked(), "Takes the values `names` of a scope, and lays changes over tables: [(table, changes)].")
      .def("rest_on", &FollowedModel::rest_on, nb::arg("table"), nb::arg("image"), CallUnlocked(),
           "A table takes the rows of another one that reads as it does.")
      .def("fold", &FollowedModel::fold, CallUnlocked(), "Copies the changes to their tables.")
      .def("close", &FollowedModel::close, "Its predictors run no more.")
      .def_prop_ro("closed", &FollowedModel::closed)
      .def_prop_ro("version", &FollowedModel::version);
  nb::class_<Caller>(m, "Predictor", "A saved model, ready to run; one thread at a time.")
      .def(
          "__init__",
          [](Caller* self, ir::ProgramRef program, std::shared_ptr<Scope> scope, std::vector<std::string> feeds,
             std::vector<std::string> fetches, int threads, std::string schema) {
            new (self) Caller(std::make_unique<Predictor>(
                Model{std::move(program), std::move(scope), std::move(feeds), std::move(fetches), std::move(schema)},
                threads));
          },
          nb::arg("program"), nb::arg("scope"), nb::arg("feeds"), nb::arg("fetches"), nb::arg("threads"),
          nb::arg("schema") = "")
      .def("clone", &Caller::clone, nb::rv_policy::take_ownership)
      .def("follow", &Caller::follow, nb::arg("model"))
      .def_prop_ro("version", &Caller::version, "Of the last run.")
      .def("explain", &Caller::explain, CallUnlocked())
      .def("run", &Caller::run, nb::arg("inputs"), nb::arg("numpy"))
      .def("row_reader", &Caller::row_reader, nb::rv_policy::take_ownership,
           "A RowReader for the inputs of the model; NotFound if it has no schema.")
      .def("run_rows", &Caller::run_rows, nb::arg("reader"), nb::arg("rows").none(), nb::arg("numpy"));
  m.def("schema_file", &schema_file, nb::arg("program"), "The file of a model's schema, next to its program.");
}

}  // namespace anabranch::python
