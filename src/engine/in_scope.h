// While a step runs it is inside the gates of the scopes whose values it uses. Another program may have left them at
// another place than its plan has them.
#pragma once
#include <optional>

#include "core/scope.h"

namespace anabranch {

class Step;

class InScope {
 public:
  // `lender`: whose values the step uses besides, or null. Waits for a change of values that is under way.
  void enter(Scope& scope, Scope* lender);
  // And moves the values to where the step's plan has them, for which it waits for the runs of others.
  void bring_home(Scope& scope, Scope* lender, Step& step);
  void leave();

 private:
  void pass(Scope& scope, Scope* lender);

  std::optional<RunGate::Run> here_, there_;
};

}  // namespace anabranch
