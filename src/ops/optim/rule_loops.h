// The float32 loops of update rules in the widest vectors of the machine (Highway, chosen at run time). Element i of
// every array depends only on element i of the arrays, and each operation rounds separately, so a loop may be split
// anywhere and gives the bits of the plain loops that float64 uses. Arrays must not overlap. Single-threaded.
#pragma once
#include <cstdint>

#include "sparse/update_rules.h"

#define AB_EACH_RULE(M)                                                                                            \
  M(Sgd)                                                                                                           \
  M(Momentum) M(Nesterov) M(Adagrad) M(DecayedAdagrad) M(Adadelta) M(Adam) M(Adamax) M(RmsProp) M(CenteredRmsProp) \
      M(Ftrl)

namespace anabranch::optim::loops {

// One function per rule: updates n elements of a parameter and of the arrays of its state.
#define AB_DECLARE(Rule) \
  void update(const rules::Rule<float>& rule, float* param, float* const* state, const float* grad, int64_t n);
AB_EACH_RULE(AB_DECLARE)
#undef AB_DECLARE

}  // namespace anabranch::optim::loops
