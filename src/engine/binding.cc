#include "engine/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace anabranch {

Step& Binding::run(const Slices& feeds, uint32_t number, const Step::Hooks& hooks, InScope& inside) {
  // Passes are not asked again about the shapes that they refused.
  if (!refused_ || passed_.feed(feeds)) [[likely]] {
    refused_ = false;
    if (run_in_place(passed_, feeds, number, hooks, inside) == Layout::Made::kReady) [[likely]]
      return passed_;
    if (!plain_) {
      StepOptions options = options_;
      options.disable = passed_.refusal();
      plain_.emplace(key(), options);
    }
    refused_ = true;
  }
  run_in_place(*plain_, feeds, number, hooks, inside);
  passed_.accept_outside();  // values that the other plan has created or moved do not count as changed
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
  if (refused_) passed_.accept_outside();
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
                  fmt::join(key().fetches, ", "), device->str(), passed_.refusal());
  std::fputs(text.c_str(), stderr);
}

}  // namespace anabranch
