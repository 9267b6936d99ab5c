// Checks once a second the runs that use one thread each, and reports those that take too long: a thread that hangs in
// a kernel cannot report itself. It never stops a run: the user may be in a debugger. One thread per process, started
// with the first plan. Any thread may call.
#pragma once
#include "exec/run.h"

namespace anabranch {

class StallWatch {
 public:
  static void add(RunState* state);
  static void remove(RunState* state);  // returns when the watch no longer uses it

 private:
  struct Seen;
  struct Watch;
  static Watch& watch();
  static void look();
  static void look_at(RunState& state, Seen& seen);
  static void report(const RunState& state, double seconds);
};

}  // namespace anabranch
