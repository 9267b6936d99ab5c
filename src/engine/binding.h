// Binds a way of calling a program to plans, and runs them. One caller at a time.
#pragma once
#include <memory>
#include <optional>

#include "core/scope.h"
#include "engine/step.h"

namespace anabranch {

// Keeps a running step inside the gates of the scopes whose values it uses, and moves values that another program has
// left on a different device than the step's plan needs.
class InScope {
 public:
  // `lender`: another scope whose values the step uses, or null. Both outlive this.
  InScope(Scope& scope, Scope* lender) : scope_(scope), lender_(lender) {}

  void enter();  // waits for a change of values that is in progress
  void leave();
  // Leaves the gates, waits until no other run uses the values, moves them to the devices of the step's plan, and
  // enters.
  void move_into_place(Step& step);

 private:
  Scope& scope_;
  Scope* const lender_;
  std::optional<RunGate::Run> here_, there_;
};

// The plans for one way to call a program (names fed, names fetched, replicas with work): a plan with all passes, and
// one without the passes that change ops. The second one is created when the first refuses the shapes of a run. Passes
// therefore never change which shapes are accepted.
class Binding {
 public:
  Binding(const StepKey& key, const StepOptions& options) : options_(options), passed_(key, options) {}

  const StepKey& key() const { return passed_.key(); }
  // Moves the values to where the plan for these shapes needs them, and runs it. They stay there as long as `inside`
  // exists. Returns the plan that ran. The feeds are borrowed until each Step releases them.
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
