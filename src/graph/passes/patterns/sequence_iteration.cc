#include "graph/passes/patterns/sequence_iteration.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

class Reader {
 public:
  explicit Reader(const ir::Block& body) : body_(body), ops_(body.ops()) {}

  SequenceIteration run() {
    if (!find_count()) return none("it counts no steps");
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!take(*ops_[i], i < counted_)) iteration_.cell.push_back(ops_[i]);
      if (!iteration_.why.empty()) return none(iteration_.why);
    }
    if (iteration_.condition.empty()) return none("its condition is not a comparison with the number of steps");
    return sort_arrays();
  }

 private:
  static SequenceIteration none(std::string why) {
    SequenceIteration left;
    left.why = std::move(why);
    return left;
  }

  bool is_outer(const std::string& name) const { return !name.empty() && body_.find_var(name) == nullptr; }

  // The only op that adds 1 to an outer variable.
  bool find_count() {
    int found = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const ir::Op& op = *ops_[i];
      if (op.type != "increment" || op.attr<float>("step") != 1.0f) continue;
      if (sole(op.input("X")) != sole(op.output("Out")) || !is_outer(sole(op.input("X")))) continue;
      iteration_.count = sole(op.input("X"));
      counted_ = i;
      ++found;
    }
    iteration_.now = iteration_.next = {iteration_.count};
    return found == 1;
  }

  // Whether the op is one of those around the cell.
  bool take(const ir::Op& op, bool before) {
    if (op.type == "increment") return sole(op.output("Out")) == iteration_.count;
    if (op.type == "read_from_array") return take_read(op, before);
    if (op.type == "write_to_array") return take_write(op, before);
    if (op.type == "shrink_rnn_memory") return take_shrink(op, before);
    if (op.type == "less_than") return take_comparison(op, before);
    return take_copy(op, before);
  }

  bool take_read(const ir::Op& op, bool before) {
    const std::string array = sole(op.input("X"));
    if (!before || sole(op.input("I")) != iteration_.count || !is_outer(array) || !op.input("X_W").empty())
      return false;
    iteration_.inputs.push_back({array, sole(op.output("Out"))});
    return true;
  }

  bool take_write(const ir::Op& op, bool before) {
    const std::string array = sole(op.output("Out"));
    if (sole(op.input("I")) != iteration_.count || !is_outer(array)) return false;
    (before ? iteration_.outputs : carried_).push_back({array, sole(op.input("X"))});
    return true;
  }

  bool take_shrink(const ir::Op& op, bool before) {
    const std::string table = sole(op.input("RankTable")), element = sole(op.input("X"));
    if (!before || sole(op.input("I")) != iteration_.count || !is_outer(table)) return false;
    if (is_outer(element)) iteration_.why = "it has a static input";
    if (!iteration_.table.empty() && iteration_.table != table) iteration_.why = "it has several orders of sequences";
    iteration_.table = table;
    iteration_.memories.push_back({"", element, sole(op.output("Out")), ""});
    return true;
  }

  bool take_comparison(const ir::Op& op, bool before) {
    if (before || sole(op.input("X")) != iteration_.count || !is_outer(sole(op.input("Y")))) return false;
    if (!is_outer(sole(op.output("Out"))) || !iteration_.condition.empty()) return false;
    iteration_.bound = sole(op.input("Y"));
    iteration_.condition = sole(op.output("Out"));
    return true;
  }

  // The counter's value for the gradient.
  bool take_copy(const ir::Op& op, bool before) {
    if (op.type != "assign" || (op.role() & ir::role::kBackward) == 0) return false;
    if (sole(op.input("X")) != iteration_.count || is_outer(sole(op.output("Out")))) return false;
    (before ? iteration_.now : iteration_.next).insert(sole(op.output("Out")));
    return true;
  }

  // Elements whose first rows are read are memories, if the iteration writes the next one; others are inputs.
  SequenceIteration sort_arrays() {
    if (iteration_.memories.empty()) return none("it has no memory");
    std::set<std::string> arrays;
    for (auto& memory : iteration_.memories) {
      const auto read = std::find_if(iteration_.inputs.begin(), iteration_.inputs.end(),
                                     [&](const auto& input) { return input.value == memory.element; });
      if (read == iteration_.inputs.end()) return none(fmt::format("{} is read elsewhere, too", memory.element));
      memory.array = read->array;
      iteration_.inputs.erase(read);
      const auto made = std::find_if(carried_.begin(), carried_.end(),
                                     [&](const auto& write) { return write.array == memory.array; });
      if (made == carried_.end()) return none(fmt::format("the memory {} is not updated", memory.value));
      memory.made = made->value;
      carried_.erase(made);
    }
    if (!carried_.empty()) return none(fmt::format("{} is written for the next step alone", carried_[0].array));
    if (iteration_.inputs.empty()) return none("it has no step input");
    bool once = true;
    for (const auto& memory : iteration_.memories) once = arrays.insert(memory.array).second && once;
    for (const auto* some : {&iteration_.inputs, &iteration_.outputs}) {
      for (const auto& each : *some) once = arrays.insert(each.array).second && once;
    }
    return once ? std::move(iteration_) : none("an array is used several times");
  }

  const ir::Block& body_;
  const std::vector<ir::OpRef>& ops_;
  size_t counted_ = 0;
  SequenceIteration iteration_;
  std::vector<SequenceIteration::Element> carried_;  // written after the increment
};

}  // namespace

SequenceIteration read_sequence_iteration(const ir::Block& body) { return Reader(body).run(); }

StepView SequenceIteration::view(const ir::Block& body) const {
  StepView view{.ops = cell,
                .inputs = {},
                .memories = {},
                .states = {},
                .outputs = {},
                .is_outer = [&body](const std::string& name) { return body.find_var(name) == nullptr; }};
  for (const auto& input : inputs) view.inputs.push_back(input.value);
  for (const auto& output : outputs) view.outputs.push_back(output.value);
  for (const auto& memory : memories) {
    view.memories.push_back(memory.value);
    view.states.push_back(memory.made);
  }
  return view;
}

}  // namespace anabranch
