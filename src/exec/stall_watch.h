// Looks once a second at the runs that are under way in one thread each, and reports those that last too long: who is
// stuck in a kernel cannot say so. It never ends anything: the user may be in a debugger. One thread a process, begun
// with the first plan. Any thread may call.
#pragma once
#include "exec/run.h"

namespace anabranch {

class StallWatch {
 public:
  static void add(RunState* state);
  static void remove(RunState* state);  // returns when nobody looks at it

 private:
  struct Seen;
  struct Watch;
  static Watch& watch();
  static void look();
  static void look_at(RunState& state, Seen& seen);
  static void report(const RunState& state, double seconds);
};

}  // namespace anabranch
