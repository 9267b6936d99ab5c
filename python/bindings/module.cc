// The module anabranch._core: the C++ engine as Python sees it.
#include <cstdlib>

#include "bind_comm.h"

NB_MODULE(_core, m) {
  using namespace anabranch::python;
  m.doc() = "The C++ engine. Use anabranch.fluid.";
  m.attr("__version__") = ANABRANCH_VERSION;
  // A thread that is alive when the process ends keeps objects. Lines about them would follow the error that ended it.
  nanobind::set_leak_warnings(std::getenv("ANABRANCH_LEAK_WARNINGS") != nullptr);
  bind_interpreter(m);
  bind_error(m);
  bind_flags(m);
  bind_core(m);
  bind_scope(m);
  bind_ir(m);
  bind_callables(m);
  bind_opdef(m);
  bind_autodiff(m);
  bind_graph(m);
  bind_io(m);
  bind_sparse(m);
  bind_data(m);
  bind_raw_rows(m);
  bind_table_stats(m);
  bind_engine(m);
  bind_run(m);
  bind_profiler(m);
  bind_ranking(m);
  bind_train(m);
  bind_predictor(m);
  bind_comm(m);
  bind_ps(m);
  install_source_locations(m);
}
