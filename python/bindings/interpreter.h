// Leaving Python's interpreter to other threads, and coming back. Whoever waits or works for long in the engine leaves
// it. A process may end while a daemon thread is in the engine: from then on no thread comes back, for the interpreter
// would end it in the middle of C++ frames.
#pragma once
#include <nanobind/nanobind.h>

#include <utility>

#include "base/run_gate.h"

namespace anabranch::python {

// Without the interpreter while it lives, or until lock(). Never returns in a daemon thread of a process that ends.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked() { lock(); }
  Unlocked(const Unlocked&) = delete;
  void lock();

 private:
  PyThreadState* state_;
};
using CallUnlocked = nanobind::call_guard<Unlocked>;

// In a callback of the engine: with the interpreter while it lives. Unavailable when the process ends, which ends what
// the engine does for that thread.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

void check_signals();  // in a callback: Ctrl-C becomes an exception

// While it lives, no step uses the values behind the gate (null: nobody does). Called with the interpreter, which
// others have while this waits.
class Changing {
 public:
  explicit Changing(RunGate* gate);
  ~Changing() {
    if (gate_) gate_->end_change();
  }
  Changing(const Changing&) = delete;

 private:
  RunGate* gate_ = nullptr;
};

void bind_interpreter(nanobind::module_& m);

}  // namespace anabranch::python
