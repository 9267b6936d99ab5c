#include "engine/in_scope.h"

#include "engine/step.h"

namespace anabranch {

void InScope::leave() {
  there_.reset();
  here_.reset();
}

void InScope::enter(Scope& scope, Scope* lender) {
  leave();
  pass(scope, lender);
}

void InScope::pass(Scope& scope, Scope* lender) {
  here_.emplace(scope.gate());
  if (lender) there_.emplace(lender->gate());
}

// Threads that wait at the gates enter after the run for which the values were moved: otherwise two programs that need
// them at different places would take them from each other without ever running.
void InScope::move_into_place(Scope& scope, Scope* lender, Step& step) {
  leave();
  const RunGate::Change change(&scope.gate());
  std::optional<RunGate::Change> change_there;
  if (lender && &lender->gate() != &scope.gate()) change_there.emplace(&lender->gate());
  step.move_into_place();
  static auto& of_movers = *new RunGate();
  const RunGate::Run mover(of_movers);  // callers inside a run do not wait for the change, which is part of that run
  pass(scope, lender);
}

}  // namespace anabranch
