// graph/: the names of the passes.

#include "bind.h"
#include "graph/pass.h"

namespace anabranch::python {

void bind_graph(nb::module_& m) {
  m.def(
      "pass_list",
      [] {
        nb::list out;
        for (const Pass& p : pipeline()) {
          nb::list switches;
          if (p.needs.field) switches.append(p.needs.field);
          if (p.needs_flag) switches.append(p.needs_flag);
          out.append(nb::make_tuple(p.name, p.what, p.tolerance, switches));
        }
        return out;
      },
      "(name, what it does, tolerance, fields of BuildStrategy and flags that switch it off) of every pass, in order.");
  m.def("explain_passes", &explain_passes, "What every pass would do under a BuildStrategy, or why it would not.");
}

}  // namespace anabranch::python
