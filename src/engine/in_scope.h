// While a step runs it is inside the gates of the scopes whose values it uses, and those values lie where its plan has
// them: another program may have left them at another place.
#pragma once
#include <optional>

#include "core/scope.h"

namespace anabranch {

class Step;

class InScope {
 public:
  // `lender`: whose values the step uses besides, or null. Waits for a change of values that is under way and, where
  // values have to move, for the runs of others.
  void enter(Scope& scope, Scope* lender, Step& step);
  void leave();

 private:
  void pass(Scope& scope, Scope* lender);
  void bring_home(Scope& scope, Scope* lender, Step& step);

  std::optional<RunGate::Run> here_, there_;
};

}  // namespace anabranch
