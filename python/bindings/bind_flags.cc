// base/flags.h: the flags of the process.
#include "base/flags.h"

#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bind.h"

namespace anabranch::python {

void bind_flags(nb::module_& m) {
  m.def(
      "all_flags",
      [] {
        nb::dict out;
        for (const FlagInfo& f : all_flags()) out[f.name.c_str()] = nb::make_tuple(f.value, f.doc);
        return out;
      },
      "Name -> (value, meaning).");
  m.def("set_flag", &set_flag, nb::arg("name"), nb::arg("value"));
  m.def("environment_flag_warnings", &environment_flag_warnings,
        "A sentence for each FLAGS_* of the environment that is not understood.");
}

}  // namespace anabranch::python
