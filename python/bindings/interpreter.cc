#include "interpreter.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/fork.h"

namespace anabranch::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> ending{false};  // Python is about to exit
std::atomic<int> away{0};         // number of threads that left the interpreter and may come back, or are in a callback
thread_local int times_away = 0;  // of this thread
std::thread::id last_thread;      // the thread that ends Python; set before `ending`

bool must_stay_away() { return ending.load() && std::this_thread::get_id() != last_thread; }

void count_away(int change) {
  times_away += change;
  away.fetch_add(change);
}

// Threads that were away exist in the parent only.
[[maybe_unused]] const bool hooked =
    (at_fork(ForkStage::kInterpreter, {.child = [] { away.store(times_away); }}), true);

// Registered with atexit. Threads in the engine finish their work, for a while, and stay there: Python is about to be
// torn down.
void end() {
  constexpr auto kPatience = std::chrono::seconds(3);
  last_thread = std::this_thread::get_id();
  ending.store(true);
  PyThreadState* const state = PyEval_SaveThread();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (away.load() > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  PyEval_RestoreThread(state);
}

}  // namespace

Unlocked::Unlocked() {
  count_away(1);
  state_ = PyEval_SaveThread();
}

void Unlocked::lock() {
  if (!state_) return;
  if (must_stay_away()) {
    count_away(-times_away);
    while (true) pause();
  }
  PyEval_RestoreThread(std::exchange(state_, nullptr));
  count_away(-1);
}

Locked::Locked() {
  count_away(1);
  if (must_stay_away()) {
    count_away(-1);
    AB_THROW(Unavailable, "the process ends");
  }
  state_ = PyGILState_Ensure();
}

Locked::~Locked() {
  PyGILState_Release(state_);
  count_away(-1);
}

void check_signals() {
  const Locked locked;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Changing::Changing(RunGate* gate) {
  if (!gate) return;
  switch (gate->try_begin_change()) {
    case RunGate::Begun::kYes: gate_ = gate; return;
    case RunGate::Begun::kInsideRun: return;
    case RunGate::Begun::kBusy: break;
  }
  const Unlocked unlocked;
  gate->begin_change();
  gate_ = gate;
}

void bind_interpreter(nb::module_&) { nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end)); }

}  // namespace anabranch::python
