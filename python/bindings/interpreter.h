// Releases and reacquires the GIL. A thread that waits or works for long in the engine releases it. A process may exit
// while a daemon thread is in the engine: from then on no thread reacquires it, because the interpreter would end it in
// the middle of C++ frames.
#pragma once
#include <nanobind/nanobind.h>

#include <utility>

#include "base/run_gate.h"

namespace anabranch::python {

// Without the GIL during its lifetime, or until lock(). Never returns in a daemon thread of a process that exits.
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

// In a callback of the engine: with the GIL during its lifetime. Unavailable if the process exits, which ends the
// engine's work for that thread.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

void check_signals();  // in a callback: Ctrl-C becomes an exception

// During its lifetime, no step uses the values guarded by the gate (null: none does). Called with the GIL, which others
// may hold while this waits.
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
