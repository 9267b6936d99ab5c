// Iterations of a loop: their limits, interruption, and the notes on their errors.
#pragma once
#include "base/error.h"
#include "base/flags.h"
#include "base/interrupt.h"

namespace anabranch::control {

// Limit for loops of untrusted models, set when they are loaded.
inline constexpr const char* kMostTurns = "op_most_turns";  // INT; 0: no limit

// Runs before an iteration and checks for interruption by the user. `most`: the limit of this loop, 0: only that of the
// flag.
inline void check_turn(int64_t turn, int64_t most) {
  check_interrupt();
  const int64_t flag = Flags::max_loop_turns();
  AB_CHECK(flag <= 0 || turn < flag, ResourceExhausted,
           "the loop has not ended after {} iterations: FLAGS_max_loop_turns", flag);
  AB_CHECK(most <= 0 || turn < most, ResourceExhausted,
           "the loop of an untrusted model has not ended after {} iterations: FLAGS_max_loop_turns_untrusted",
           most);
}

inline void note_turn(Error& e, int64_t turn) {
  e.with_note(fmt::format("iteration {} of the loop, counted from 0", turn));
}

}  // namespace anabranch::control
