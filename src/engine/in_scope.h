// Keeps a running step inside the gates of the scopes whose values it uses. Another program may have left them at
// another place than the step's plan needs.
#pragma once
#include <optional>

#include "core/scope.h"

namespace anabranch {

class Step;

class InScope {
 public:
  // `lender`: another scope whose values the step uses, or null. Both outlive this.
  InScope(Scope& scope, Scope* lender) : scope_(scope), lender_(lender) {}

  void enter();  // waits for a change of values that is in progress
  // Also moves the values to where the step's plan needs them, waiting for the runs of others.
  void move_into_place(Step& step);
  void leave();

 private:
  void pass();

  Scope& scope_;
  Scope* const lender_;
  std::optional<RunGate::Run> here_, there_;
};

}  // namespace anabranch
