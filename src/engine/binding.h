// Binds a way of calling a program to plans, and runs them. One caller at a time.
#pragma once
#include <memory>
#include <optional>

#include "core/scope.h"
#include "engine/step.h"

namespace anabranch {

// Keeps a running step inside the gates of the scopes whose values it uses. Another program may have left them at
// another place than the step's plan needs.
class InScope {
 public:
  // `lender`: another scope whose values the step uses, or null. Both outlive this.
  InScope(Scope& scope, Scope* lender) : scope_(scope), lender_(lender) {}

  void enter();  // waits for a change of values that is in progress
  void leave();
  // Leaves, moves the values to where the step's plan needs them when the runs of others have ended, and enters.
  void move_into_place(Step& step);

 private:
  Scope& scope_;
  Scope* const lender_;
  std::optional<RunGate::Run> here_, there_;
};

// One way of calling a program (names fed, names fetched, replicas with work), bound to its plans: the one with passes,
// and the one without passes that change ops, which is created when passes refuse the shapes of a run. Passes therefore
// never change what is accepted.
class Binding {
 public:
  Binding(const StepKey& key, const StepOptions& options) : options_(options), passed_(key, options) {}

  const StepKey& key() const { return passed_.key(); }
  // Runs the plan for these shapes, with its values where it needs them; they stay there while `inside` is. Returns the
  // plan that ran. The feeds are borrowed until each Step releases them.
  Step& run(const Slices& feeds, uint32_t number, const Step::Hooks& hooks, InScope& inside);

  const Step& last() const { return refused_ ? *plain_ : passed_; }  // the plan for the last shapes
  Step* idle() { return refused_ ? &passed_ : plain_.get(); }        // the other one; null: there is none
  template <class Use> void each(Use use) {
    use(passed_);
    if (plain_) use(*plain_);
  }

 private:
  Layout::Made run_in_place(Step& step, const Slices& feeds, uint32_t number, const Step::Hooks& hooks,
                            InScope& inside);
  void report_refusal();

  StepOptions options_;
  Step passed_;
  std::unique_ptr<Step> plain_;
  bool refused_ = false;   // passes refused the last shapes
  bool reported_ = false;  // that the CPU runs a plan meant for devices
};

}  // namespace anabranch
