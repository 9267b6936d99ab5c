// How the user ends an op that would run for long, such as a loop that does not end. Whoever hosts the engine installs
// the question; ops ask it. The answer yes is an exception that passes through the run as it is.
#pragma once
#include <exception>

namespace anabranch {

struct Interrupted {
  std::exception_ptr why;  // what the host throws to its own caller
};

// `ask` throws Interrupted; it is called in any thread, at most every 50 ms in each. Null: nobody interrupts.
void set_interrupt_question(void (*ask)());
void check_interrupt();

}  // namespace anabranch
