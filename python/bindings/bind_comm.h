// The functions of groups of processes.
#pragma once
#include "bind.h"

namespace anabranch::python {

void bind_comm(nb::module_& m);

}  // namespace anabranch::python
