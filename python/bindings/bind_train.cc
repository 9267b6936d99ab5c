// engine/train_loop: passes over a stream of batches.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "engine/train_loop.h"

namespace anabranch::python {
namespace {

nb::dict progress_dict(const TrainProgress& p) {
  nb::dict out;
  out["batches"] = p.batches;
  out["rows"] = p.rows;
  out["seconds"] = p.seconds;
  out["waited_s"] = p.waited_s;
  out["running_s"] = p.running_s;
  out["share_done"] = p.share_done;
  out["rows_expected"] = p.rows_expected;
  return out;
}

nb::list values_list(const std::vector<Fetched>& fetched) {
  nb::list out;
  for (const Fetched& slices : fetched) out.append(fetched_to_python(FetchedValue(slices[0]), /*numpy=*/false));
  return out;
}

// tick(progress) and show(batch, values, progress) are None or callables; Ctrl-C is handled in any case.
nb::dict run(TrainLoop& self, std::shared_ptr<data::BatchStream> stream, nb::object tick, nb::object show, bool go_on) {
  TrainCallbacks callbacks;
  callbacks.tick = [&](const TrainProgress& p) {
    const Locked locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!tick.is_none()) tick(progress_dict(p));
  };
  if (!show.is_none()) {
    callbacks.show = [&](int64_t batch, const std::vector<Fetched>& values, const TrainProgress& p) {
      const Locked locked;
      show(batch, values_list(values), progress_dict(p));
    };
  }
  TrainProgress done;
  {
    const Unlocked unlocked;
    done = self.run(*stream, callbacks, go_on);
  }
  nb::dict out = progress_dict(done);
  out["means"] = nb::cast(done.means);
  return out;
}

using Ranked = std::vector<std::tuple<size_t, size_t, std::optional<size_t>>>;  // predict, label, group

TrainLoopOptions options_of(int trainers, std::vector<std::string> fetch, const std::vector<size_t>& averaged,
                            const Ranked& ranked, int64_t show_every, int64_t merge_every) {
  std::vector<size_t> all = averaged;
  std::vector<RankedFetches> fetches;
  for (const auto& [predict, label, group] : ranked) {
    all.insert(all.end(), {predict, label, group.value_or(label)});
    fetches.push_back({predict, label, group});
  }
  for (const size_t index : all) {
    AB_CHECK(index < fetch.size(), InvalidArgument, "averaged and ranked must hold indices below {}, got {}",
             fetch.size(), index);
  }
  return {trainers, std::move(fetch), show_every, merge_every, averaged, std::move(fetches)};
}

}  // namespace

void bind_train(nb::module_& m) {
  nb::class_<TrainLoop>(m, "TrainLoop", "Training, or a pass without, over all batches of a stream.")
      .def_static(
          "of_one",
          [](CompiledProgram& engine, const ir::ProgramRef& program, std::vector<std::string> fetch, int64_t show_every,
             const std::vector<size_t>& averaged, const Ranked& ranked) {
            return std::make_unique<TrainLoop>(engine, program,
                                               options_of(1, std::move(fetch), averaged, ranked, show_every, 0));
          },
          nb::arg("engine"), nb::arg("program"), nb::arg("fetch"), nb::arg("show_every"),
          nb::arg("averaged") = std::vector<size_t>(), nb::arg("ranked") = Ranked(), nb::keep_alive<0, 1>(),
          "One trainer, which runs `engine`: its bits are those of feeding the same batches to it.")
      .def_static(
          "of_many",
          [](const ir::ProgramRef& program, std::shared_ptr<Scope> scope, int trainers, std::vector<std::string> fetch,
             int64_t show_every, int64_t merge_every, const std::vector<size_t>& averaged, const Ranked& ranked) {
            return std::make_unique<TrainLoop>(
                program, std::move(scope),
                options_of(trainers, std::move(fetch), averaged, ranked, show_every, merge_every));
          },
          nb::arg("program"), nb::arg("scope"), nb::arg("trainers"), nb::arg("fetch"), nb::arg("show_every"),
          nb::arg("merge_every") = 0, nb::arg("averaged") = std::vector<size_t>(), nb::arg("ranked") = Ranked(),
          "Trainers that share rows of tables and merge what else they learn.")
      .def("run", &run, nb::arg("stream"), nb::arg("tick").none(), nb::arg("show").none(), nb::arg("go_on") = false)
      .def("ranking", &TrainLoop::ranking, "list of RankingCounts: of the last pass, for each of `ranked`.")
      .def("ask_for_values", &TrainLoop::ask_for_values);
}

}  // namespace anabranch::python
