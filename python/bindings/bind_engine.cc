// engine/: compiled programs.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "core/host_copy.h"
#include "device/devices.h"
#include "device/pool.h"
#include "engine/compiled_program.h"
#include "engine/feed.h"

namespace anabranch::python {
namespace {

FeedMap feed_map(const nb::dict& feed) {
  FeedMap out;
  out.reserve(feed.size());
  for (auto [key, value] : feed) {
    auto name = nb::cast<std::string>(key);
    Tensor t = feed_tensor(name, value);
    out.emplace_back(std::move(name), std::move(t));
  }
  return out;
}

// feeds: one dict, or one a replica. Result: one item a fetch; a list with one item a replica when not merged.
nb::list run(CompiledProgram& self, const nb::list& feeds, const std::vector<std::string>& fetch, bool numpy,
             bool merged, bool read) {
  RunRequest request;
  request.fetch = fetch;
  request.read = read;
  for (nb::handle feed : feeds) request.feeds.push_back(feed_map(nb::borrow<nb::dict>(feed)));
  request.between = check_signals;
  std::vector<Fetched> fetched;
  {
    const Unlocked unlocked;
    fetched = self.run(request);
  }
  nb::list out;
  for (size_t i = 0; i < fetched.size(); ++i) {
    Fetched& slices = fetched[i];
    if (merged) {
      out.append(fetched_to_python(slices.size() == 1 ? std::move(slices[0]) : merge_fetched(slices, fetch[i]), numpy));
      continue;
    }
    nb::list list;
    for (FetchedValue& slice : slices) list.append(fetched_to_python(std::move(slice), numpy));
    out.append(list);
  }
  return out;
}

nb::list memory_to_python(const std::vector<MemoryUse>& uses) {
  nb::list out;
  for (const MemoryUse& u : uses) {
    out.append(nb::make_tuple(u.name, u.replica, static_cast<int>(u.kind), u.address, u.bytes, u.place.str()));
  }
  return out;
}

nb::list replica_states(const CompiledProgram& self) {
  nb::list out;
  for (CompiledProgram::ReplicaState& state : self.replica_states()) {
    TensorRef value;
    value.own = std::move(state.value);
    out.append(nb::make_tuple(state.name, state.replica, nb::cast(std::move(value))));
  }
  return out;
}

void bind_strategies(nb::module_& m) {
  nb::enum_<ReduceMode>(m, "ReduceMode", nb::is_arithmetic())
      .value("AllReduce", ReduceMode::kAllReduce)
      .value("Reduce", ReduceMode::kReduce);
  nb::enum_<GradientScale>(m, "GradientScale", nb::is_arithmetic())
      .value("CoeffNumDevice", GradientScale::kCoeffNumDevice)
      .value("One", GradientScale::kOne)
      .value("Customized", GradientScale::kCustomized);
  using B = BuildStrategy;
  nb::class_<B>(m, "BuildStrategy")
      .def(nb::init<>())
      .def_rw("reduce_strategy", &B::reduce_strategy)
      .def_rw("gradient_scale_strategy", &B::gradient_scale_strategy)
      .def_rw("debug_graphviz_path", &B::debug_graphviz_path)
      .def_rw("enable_sequential_execution", &B::enable_sequential_execution)
      .def_rw("enable_backward_optimizer_op_deps", &B::enable_backward_optimizer_op_deps)
      .def_rw("fuse_elewise_add_act_ops", &B::fuse_elewise_add_act_ops)
      .def_rw("fuse_bn_act_ops", &B::fuse_bn_act_ops)
      .def_rw("fuse_all_optimizer_ops", &B::fuse_all_optimizer_ops)
      .def_rw("fuse_all_reduce_ops", &B::fuse_all_reduce_ops, nb::arg().none())
      .def_rw("use_bfloat16", &B::use_bfloat16)
      .def_rw("sync_batch_norm", &B::sync_batch_norm)
      .def_rw("enable_inplace", &B::enable_inplace)
      .def_rw("async_mode", &B::async_mode)
      .def_rw("num_trainers", &B::num_trainers)
      .def_rw("nccl_comm_num", &B::nccl_comm_num)
      .def_rw("trainer_id", &B::trainer_id)
      .def_rw("disabled_passes", &B::disabled_passes);
  using E = ExecutionStrategy;
  nb::class_<E>(m, "ExecutionStrategy")
      .def(nb::init<>())
      .def_rw("num_threads", &E::num_threads)
      .def_rw("num_iteration_per_drop_scope", &E::num_iteration_per_drop_scope)
      .def_rw("num_iteration_per_run", &E::num_iteration_per_run)
      .def_rw("dry_run", &E::dry_run);
}

}  // namespace

Tensor feed_tensor(const std::string& name, nb::handle value) {
  TensorRef* t = nullptr;
  if (nb::try_cast<TensorRef*>(value, t) && t) {
    if (!t->get().initialized()) throw BadFeed("the LoDTensor fed as " + name + " was never set");
    return t->get();
  }
  try {
    return borrow_array(value);
  } catch (const Error& e) {
    BadFeed bad(e.message());
    bad.with_while("feeding " + name);
    throw bad;
  }
}

nb::object fetched_to_python(FetchedValue value, bool numpy) {
  if (auto* array = std::get_if<TensorArray>(&value)) {
    nb::list out;
    for (Tensor& t : *array) out.append(fetched_to_python(std::move(t), numpy));
    return out;
  }
  Tensor& t = std::get<Tensor>(value);
  if (numpy && t.lod().empty()) return array_view(std::move(t));
  TensorRef out;
  out.own = std::move(t);
  return nb::cast(std::move(out));
}

// By replica: the number of a device, or -1 for the CPU; none: the CPU for all.
std::vector<Place> places_of(const std::vector<int>& devices) {
  std::vector<Place> places;
  for (const int d : devices) {
    if (d >= 0) device::Devices::get().check_device(d);
    places.push_back(d < 0 ? Place() : Place::cuda(d));
  }
  return places;
}

nb::list device_memory() {
  nb::list out;
  device::Devices* devices = device::Devices::opened();
  if (!devices) return out;
  const auto add = [&](Place place, const device::Pool& pool) {
    out.append(nb::make_tuple(place.str(), pool.used(), pool.kept()));
  };
  for (int d = 0; d < devices->count(); ++d) add(Place::cuda(d), devices->pool(d));
  add(Place::pinned(), devices->pinned_pool());
  return out;
}

void bind_engine(nb::module_& m) {
  m.def("devices_offered", &device::Devices::offered, "Whether there is a plug-in for devices.");
  m.def(
      "device_count", [] { return device::Devices::get().count(); }, "Devices of the plug-in.");
  m.def("device_memory", &device_memory,
        "Of each device that is open, and pinned memory: (place, bytes in use, bytes kept for use again).");
  bind_strategies(m);
  m.def("scope_memory", [](const Scope& scope) { return memory_to_python(memory_of(scope)); });
  nb::class_<CompiledProgram>(m, "CompiledProgram", nb::is_weak_referenceable(),
                              "A program bound to a scope and a number of replicas.")
      .def(
          "__init__",
          [](CompiledProgram* self, ir::ProgramRef program, std::shared_ptr<Scope> scope, int replicas,
             bool data_parallel, std::string loss_name, const BuildStrategy& build, const ExecutionStrategy& execution,
             CompiledProgram* share_vars_from, const std::vector<int>& devices) {
            CompileOptions options;
            options.replicas = replicas;
            options.data_parallel = data_parallel;
            options.loss_name = std::move(loss_name);
            options.build = build;
            options.execution = execution;
            options.share_vars_from = share_vars_from;
            options.places = places_of(devices);
            new (self) CompiledProgram(std::move(program), std::move(scope), std::move(options));
          },
          nb::arg("program"), nb::arg("scope"), nb::arg("replicas"), nb::arg("data_parallel"), nb::arg("loss_name"),
          nb::arg("build"), nb::arg("execution"), nb::arg("share_vars_from").none(),
          nb::arg("devices") = std::vector<int>(), nb::keep_alive<1, 9>())
      .def("run", &run, nb::arg("feeds"), nb::arg("fetch"), nb::arg("numpy"), nb::arg("merged"),
           nb::arg("read") = false)
      .def("replicas", &CompiledProgram::replicas)
      .def("explain", &CompiledProgram::explain, CallUnlocked())
      .def("graph_dot", &CompiledProgram::graph_dot, CallUnlocked())
      .def("random_state",
           [](const CompiledProgram& self) {
             const CompiledProgram::RandomState s = self.random_state();
             return nb::make_tuple(s.seed, s.runs);
           })
      .def(
          "set_random_state",
          [](CompiledProgram& self, uint64_t seed, uint32_t runs) {
            self.set_random_state({seed, runs});
          },
          nb::arg("seed"), nb::arg("runs"))
      .def("replica_states", &replica_states, "[(name, replica, LoDTensor)] of replicas but the first.")
      .def(
          "set_replica_states",
          [](CompiledProgram& self, const std::vector<std::tuple<std::string, int, TensorRef*>>& states) {
            std::vector<CompiledProgram::ReplicaState> given;
            for (const auto& [name, replica, value] : states) given.push_back({name, replica, value->get()});
            self.set_replica_states(given);
          },
          nb::arg("states"))
      .def("drop_temporaries", &CompiledProgram::drop_temporaries, CallUnlocked())
      .def("temporary_bytes", &CompiledProgram::temporary_bytes, CallUnlocked())
      .def(
          "memory",
          [](const CompiledProgram& self) {
            std::vector<MemoryUse> uses;
            {
              const Unlocked unlocked;  // another thread's run may have to end first
              uses = self.memory();
            }
            return memory_to_python(uses);
          },
          "(name, replica, kind, address, bytes, place); kinds: 0 kept in a scope, 1 temporary, 2 fed.")
      .def(
          "set_probe",
          [](CompiledProgram& self, nb::object probe) {
            if (probe.is_none()) return self.set_probe({});
            self.set_probe([probe](const std::string& type, int replica, int node) {
              const Locked locked;
              probe(type, replica, node);
            });
          },
          nb::arg("probe").none(), "For tests: called before every node of a run; may raise.");
}

}  // namespace anabranch::python
