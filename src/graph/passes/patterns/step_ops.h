// The ops of one step of a recurrence, and the tools that follow its values back to the ops that make them.
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

// One step, whoever runs it: a block for each step, or ops that stand in a row for each.
struct StepView {
  std::vector<ir::OpRef> ops;
  std::vector<std::string> inputs;                   // what each step has its own of
  std::vector<std::string> memories, states;         // what a step finds, and what it leaves for the next one
  std::vector<std::string> outputs;                  // what is seen outside
  std::function<bool(const std::string&)> is_outer;  // the same in each step
};

class StepOps {
 public:
  explicit StepOps(const StepView& view);
  const std::string& written_twice() const { return twice_; }
  bool makes(const std::string& name) const { return made_by_.count(name) != 0; }
  bool is_outer(const std::string& name) const { return !name.empty() && !makes(name) && view_.is_outer(name); }

  // The op of this type that makes the value; null when another one does, or none.
  const ir::Op* made(const std::string& name, const char* type);
  // What a step hands on is a copy.
  std::string original(std::string name);
  // The one value that an op of this type takes in X; empty when another op makes `name`.
  std::string inside(const std::string& name, const char* type);
  // X and Y of an op of this type.
  std::optional<std::pair<std::string, std::string>> operands(const std::string& name, const char* type);
  // 1 - x; empty when it is something else.
  std::string one_less(const std::string& name);
  // An op that nobody has met.
  const ir::Op* left_over() const;

  // fn(), and if it fails, what it has met counts as not met.
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
