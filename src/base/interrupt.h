// Lets the user interrupt an op that runs for long, such as an endless loop. The host of the engine installs a callback
// that ops poll. An interrupt is an exception that passes through the run unchanged.
#pragma once
#include <exception>

namespace anabranch {

struct Interrupted {
  std::exception_ptr why;  // the exception that the host throws to its caller
};

// `ask` throws Interrupted. It is called from any thread, at most every 50 ms in each. Null disables interrupts.
void set_interrupt_question(void (*ask)());
void check_interrupt();

}  // namespace anabranch
