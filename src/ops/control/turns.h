// Turns of a loop: how many there may be, how they are interrupted, and what an error says of them.
#pragma once
#include "base/error.h"
#include "base/flags.h"
#include "base/interrupt.h"

namespace anabranch::control {

// Before a turn: the user may have interrupted the run.
inline void check_turn(int64_t turn) {
  check_interrupt();
  const int64_t most = Flags::max_loop_turns();
  AB_CHECK(most <= 0 || turn < most, ResourceExhausted, "the loop has not ended after {} turns: FLAGS_max_loop_turns",
           most);
}

inline void note_turn(Error& e, int64_t turn) {
  e.with_note(fmt::format("turn   {} of the loop, counted from 0", turn));
}

}  // namespace anabranch::control
