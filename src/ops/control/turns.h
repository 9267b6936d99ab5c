// Turns of a loop: how many there may be, how they are interrupted, and what an error says of them.
#pragma once
#include "base/error.h"
#include "base/flags.h"
#include "base/interrupt.h"

namespace anabranch::control {

// Of loops in models from strangers, put there when they are loaded.
inline constexpr const char* kMostTurns = "op_most_turns";  // INT; 0: no limit

// Before a turn: the user may have interrupted the run. `most`: of this loop, 0: no limit but that of the flag.
inline void check_turn(int64_t turn, int64_t most) {
  check_interrupt();
  const int64_t flag = Flags::max_loop_turns();
  AB_CHECK(flag <= 0 || turn < flag, ResourceExhausted, "the loop has not ended after {} turns: FLAGS_max_loop_turns",
           flag);
  AB_CHECK(most <= 0 || turn < most, ResourceExhausted,
           "the loop of a model that is not trusted has not ended after {} turns: FLAGS_max_loop_turns_untrusted",
           most);
}

inline void note_turn(Error& e, int64_t turn) {
  e.with_note(fmt::format("turn   {} of the loop, counted from 0", turn));
}

}  // namespace anabranch::control
