// The ops of one step of a recurrence, and tools that trace values back to the ops that compute them.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace anabranch {

// One step of either form: a block that runs for each step, or consecutive ops for each.
struct StepView {
  std::vector<ir::OpRef> ops;
  std::vector<std::string> inputs;  // inputs that differ between steps
  // values at the start of a step, and those it leaves for the next one
  std::vector<std::string> memories, states;
  std::vector<std::string> outputs;                  // values visible outside
  std::function<bool(const std::string&)> is_outer;  // equal in each step
};

class StepOps {
 public:
  explicit StepOps(const StepView& view);
  const std::string& written_twice() const { return twice_; }
  bool makes(const std::string& name) const { return made_by_.count(name) != 0; }
  bool is_outer(const std::string& name) const { return !name.empty() && !makes(name) && view_.is_outer(name); }

  // The op of this type that computes the value; null if there is none or it has another type.
  const ir::Op* made(const std::string& name, const char* type);
  // A value that a step passes on is a copy.
  std::string original(std::string name);
  // The only argument in X of an op of this type; empty if another op computes `name`.
  std::string inside(const std::string& name, const char* type);
  // X and Y of an op of this type.
  std::optional<std::pair<std::string, std::string>> operands(const std::string& name, const char* type);
  // 1 - x; empty when it is something else.
  std::string one_less(const std::string& name);
  // An op that was not visited.
  const ir::Op* left_over() const;

  // fn(); if it fails, the ops it visited count as not visited.
  template <class Fn> bool attempt(Fn&& fn) {
    const std::set<int> before = met_;
    if (fn()) return true;
    met_ = before;
    return false;
  }
  // fn(a, b), or fn(b, a).
  template <class Fn> bool either(const std::optional<std::pair<std::string, std::string>>& two, Fn&& fn) {
    return two && (attempt([&] { return fn(two->first, two->second); }) ||
                   attempt([&] { return fn(two->second, two->first); }));
  }

 private:
  const StepView& view_;
  std::map<std::string, int> made_by_;
  std::set<int> met_;
  std::string twice_;
};

inline std::string sole(const std::vector<std::string>& names) { return names.size() == 1 ? names[0] : ""; }
// Of matrices, the axis of columns.
bool is_last_axis(const ir::Op& op);

}  // namespace anabranch
