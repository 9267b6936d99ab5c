// Parameters that no op writes while the program runs: kernels convert them once.
#pragma once
#include "graph/match.h"

namespace anabranch {

bool is_constant(const Match& m, int name);

}  // namespace anabranch
