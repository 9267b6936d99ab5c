#include "engine/in_scope.h"

#include "engine/step.h"

namespace anabranch {

void InScope::leave() {
  there_.reset();
  here_.reset();
}

void InScope::enter() {
  leave();
  pass();
}

void InScope::pass() {
  here_.emplace(scope_.gate());
  if (lender_) there_.emplace(lender_->gate());
}

// Threads that wait at the gates enter after the run for which the values were moved: otherwise two programs that need
// them at different places would take them from each other without ever running.
void InScope::move_into_place(Step& step) {
  leave();
  const RunGate::Change change(&scope_.gate());
  std::optional<RunGate::Change> change_there;
  if (lender_ && &lender_->gate() != &scope_.gate()) change_there.emplace(&lender_->gate());
  step.move_into_place();
  static auto& of_movers = *new RunGate();
  const RunGate::Run mover(of_movers);  // callers inside a run do not wait for the change, which is part of that run
  pass();
}

}  // namespace anabranch
