// Iterations of a loop: their limits, interruption, and the notes on their errors.
#pragma once
#include "base/counted.h"
#include "base/error.h"
#include "base/flags.h"
#include "base/interrupt.h"

namespace anabranch::control {

// Limit for loops of untrusted models, set when they are loaded.
inline constexpr const char* kMaxIterations = "op_max_iterations";  // INT; 0: no limit

// Runs before an iteration and checks for interruption by the user. `most`: the limit of this loop, 0: only that of the
// flag.
inline void check_iteration(int64_t iteration, int64_t most) {
  check_interrupt();
  const int64_t flag = Flags::max_loop_iterations();
  AB_CHECK(flag <= 0 || iteration < flag, ResourceExhausted,
           "the loop has not ended after {}: FLAGS_max_loop_iterations", counted(flag, "iteration"));
  AB_CHECK(most <= 0 || iteration < most, ResourceExhausted,
           "the loop of an untrusted model has not ended after {}: FLAGS_max_loop_iterations_untrusted",
           counted(most, "iteration"));
}

inline void note_iteration(Error& e, int64_t iteration) {
  e.with_note(fmt::format("iteration {} of the loop, counted from 0", iteration));
}

}  // namespace anabranch::control
