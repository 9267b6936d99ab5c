#include "engine/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace anabranch {

void InScope::leave() {
  there_.reset();
  here_.reset();
}

void InScope::enter() {
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
  step.layout().move_into_place();
  static auto& of_movers = *new RunGate();
  const RunGate::Run mover(of_movers);  // callers inside a run do not wait for the change, which is part of that run
  enter();
}

Step& Binding::run(const Slices& feeds, uint32_t number, const Step::Hooks& hooks, InScope& inside) {
  // Passes are not asked again about the shapes that they refused.
  if (!refused_ || passed_.feed(feeds)) [[likely]] {
    refused_ = false;
    if (run_in_place(passed_, feeds, number, hooks, inside) == Layout::Made::kReady) [[likely]]
      return passed_;
    if (!plain_) {
      StepOptions options = options_;
      options.disable = passed_.layout().refusal();
      plain_ = std::make_unique<Step>(key(), options);
    }
    refused_ = true;
  }
  run_in_place(*plain_, feeds, number, hooks, inside);
  passed_.layout().outside_changed();  // values that the other plan has created or moved do not count as changed
  if (!reported_ && options_.compile->on_devices()) report_refusal();
  return *plain_;
}

// Values are moved at most once: they stay while `inside` is.
Layout::Made Binding::run_in_place(Step& step, const Slices& feeds, uint32_t number, const Step::Hooks& hooks,
                                   InScope& inside) {
  Layout::Made made = step.run(feeds, number, hooks);
  if (made != Layout::Made::kElsewhere) [[likely]]
    return made;
  inside.move_into_place(step);
  if (refused_) passed_.layout().outside_changed();
  made = step.run(feeds, number, hooks);
  AB_CHECK(made != Layout::Made::kElsewhere, Internal, "the values of a program do not stay where its plan has them");
  return made;
}

// Values are right, only slower than on a device: without a message the user would not look at explain().
void Binding::report_refusal() {
  reported_ = true;
  const std::vector<Place>& places = options_.compile->places;
  const auto device = std::find_if(places.begin(), places.end(), [](Place p) { return !p.on_host(); });
  const std::string text =
      fmt::format("anabranch: the step that fetches {} runs on the CPU, not on {}: the passes reject its shapes ({})\n",
                  fmt::join(key().fetches, ", "), device->str(), passed_.layout().refusal());
  std::fputs(text.c_str(), stderr);
}

}  // namespace anabranch
