// engine/profiler.h: measurements of runs.

#include "base/ceiling.h"
#include "bind.h"
#include "engine/profile_files.h"
#include "exec/device_times.h"

namespace anabranch::python {
namespace {

nb::dict measured(const Measured& m) {
  nb::dict d;
  d["calls"] = m.calls;
  d["total_ns"] = m.total_ns;
  d["min_ns"] = m.min_ns;
  d["max_ns"] = m.max_ns;
  d["helped_ns"] = m.helped_ns;
  d["first_end_ns"] = m.first_end_ns;
  d["flops"] = m.flops;
  d["bytes"] = m.bytes;
  return d;
}

nb::dict plan_to_python(const ProfiledPlan& p) {
  nb::list nodes, path;
  for (const ProfiledNode& n : p.nodes) {
    nb::dict d = measured(n.measured);
    d["type"] = n.type;
    d["place"] = n.place;
    d["replica"] = n.replica;
    d["inner"] = n.inner;
    d["on_device"] = measured(n.on_device);
    nodes.append(d);
  }
  for (const auto& [node, ns] : p.critical_path()) path.append(nb::make_tuple(node, ns));
  nb::dict d;
  d["nodes"] = nodes;
  d["critical_path"] = path;
  d["runs"] = p.runs;
  d["run_ns"] = p.run_ns;
  d["computing_ns"] = p.computing_ns;
  d["on_devices_ns"] = p.on_devices_ns;
  d["feed"] = measured(p.feed);
  d["infer_shape"] = measured(p.shapes);
  d["fetch"] = measured(p.fetch);
  return d;
}

// A profile as it was when it was taken: plans as dicts, and the two files.
void bind_profile(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "What the profiler has measured until a moment.")
      .def_ro("begin_ns", &Profile::begin_ns)
      .def_ro("end_ns", &Profile::end_ns)
      .def_ro("dropped_events", &Profile::dropped_events)
      .def("plans",
           [](const Profile& p) {
             nb::list out;
             for (const ProfiledPlan& plan : p.plans) out.append(plan_to_python(plan));
             return out;
           })
      .def(
          "events",
          [](const Profile& p) {
            nb::list out;
            for (const auto& [plan, e] : p.events) {
              out.append(nb::make_tuple(plan, e.node, static_cast<int>(e.track), static_cast<int>(e.kind), e.begin_ns,
                                        e.end_ns));
            }
            return out;
          },
          "(plan, node or -1, thread, kind, begin_ns, end_ns); kinds: 0 op, 1 help with its loop, 2 run, 3 feed, 4 "
          "shapes, 5 fetch, 6 op on a device, whose thread is -1 - its queue.")
      .def("chrome_trace", &chrome_trace, "JSON for Perfetto and chrome://tracing.")
      .def("fluid_profile", [](const Profile& p) {
        const std::string bytes = fluid_profile(p);
        return nb::bytes(bytes.data(), bytes.size());
      });
}

}  // namespace

void bind_profiler(nb::module_& m) {
  bind_profile(m);
  m.def("queue_name", &name_of_queue, "Of a device's queue, as events number them.");
  m.def("profiler_on", &Profiler::on);
  m.def("start_profiler", [] { Profiler::instance().start(); });
  m.def("stop_profiler", [] { Profiler::instance().stop(); });
  m.def("reset_profiler", [] { Profiler::instance().reset(); });
  m.def("profile", [] { return Profiler::instance().snapshot(); });
  m.def(
      "core_ceiling",
      [] {
        Ceiling c;
        {
          const Unlocked unlocked;
          c = core_ceiling();
        }
        return nb::make_tuple(c.flops_per_s, c.bytes_per_s);
      },
      "(float32 operations, bytes) a second that one core can do at best.");
}

}  // namespace anabranch::python
