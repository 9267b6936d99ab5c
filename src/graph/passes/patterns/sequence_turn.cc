#include "graph/passes/patterns/sequence_turn.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

class Reader {
 public:
  explicit Reader(const ir::Block& body) : body_(body), ops_(body.ops()) {}

  SequenceTurn run() {
    if (!find_count()) return none("it counts no steps");
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!take(*ops_[i], i < counted_)) turn_.cell.push_back(ops_[i]);
      if (!turn_.why.empty()) return none(turn_.why);
    }
    if (turn_.condition.empty()) return none("its condition is not a comparison with the number of steps");
    return sort_arrays();
  }

 private:
  static SequenceTurn none(std::string why) {
    SequenceTurn left;
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
      turn_.count = sole(op.input("X"));
      counted_ = i;
      ++found;
    }
    turn_.now = turn_.next = {turn_.count};
    return found == 1;
  }

  // Whether the op is one of those around the cell.
  bool take(const ir::Op& op, bool before) {
    if (op.type == "increment") return sole(op.output("Out")) == turn_.count;
    if (op.type == "read_from_array") return take_read(op, before);
    if (op.type == "write_to_array") return take_write(op, before);
    if (op.type == "shrink_rnn_memory") return take_shrink(op, before);
    if (op.type == "less_than") return take_comparison(op, before);
    return take_copy(op, before);
  }

  bool take_read(const ir::Op& op, bool before) {
    const std::string array = sole(op.input("X"));
    if (!before || sole(op.input("I")) != turn_.count || !is_outer(array) || !op.input("X_W").empty()) return false;
    turn_.inputs.push_back({array, sole(op.output("Out"))});
    return true;
  }

  bool take_write(const ir::Op& op, bool before) {
    const std::string array = sole(op.output("Out"));
    if (sole(op.input("I")) != turn_.count || !is_outer(array)) return false;
    (before ? turn_.outputs : carried_).push_back({array, sole(op.input("X"))});
    return true;
  }

  bool take_shrink(const ir::Op& op, bool before) {
    const std::string table = sole(op.input("RankTable")), element = sole(op.input("X"));
    if (!before || sole(op.input("I")) != turn_.count || !is_outer(table)) return false;
    if (is_outer(element)) turn_.why = "it has a static input";
    if (!turn_.table.empty() && turn_.table != table) turn_.why = "it has several orders of sequences";
    turn_.table = table;
    turn_.memories.push_back({"", element, sole(op.output("Out")), ""});
    return true;
  }

  bool take_comparison(const ir::Op& op, bool before) {
    if (before || sole(op.input("X")) != turn_.count || !is_outer(sole(op.input("Y")))) return false;
    if (!is_outer(sole(op.output("Out"))) || !turn_.condition.empty()) return false;
    turn_.bound = sole(op.input("Y"));
    turn_.condition = sole(op.output("Out"));
    return true;
  }

  // The counter's value for the gradient.
  bool take_copy(const ir::Op& op, bool before) {
    if (op.type != "assign" || (op.role() & ir::role::kBackward) == 0) return false;
    if (sole(op.input("X")) != turn_.count || is_outer(sole(op.output("Out")))) return false;
    (before ? turn_.now : turn_.next).insert(sole(op.output("Out")));
    return true;
  }

  // Elements whose first rows are read are memories, if the iteration writes the next one; others are inputs.
  SequenceTurn sort_arrays() {
    if (turn_.memories.empty()) return none("it has no memory");
    std::set<std::string> arrays;
    for (auto& memory : turn_.memories) {
      const auto read = std::find_if(turn_.inputs.begin(), turn_.inputs.end(),
                                     [&](const auto& input) { return input.value == memory.element; });
      if (read == turn_.inputs.end()) return none(fmt::format("{} is read elsewhere, too", memory.element));
      memory.array = read->array;
      turn_.inputs.erase(read);
      const auto made = std::find_if(carried_.begin(), carried_.end(),
                                     [&](const auto& write) { return write.array == memory.array; });
      if (made == carried_.end()) return none(fmt::format("the memory {} is not updated", memory.value));
      memory.made = made->value;
      carried_.erase(made);
    }
    if (!carried_.empty()) return none(fmt::format("{} is written for the next step alone", carried_[0].array));
    if (turn_.inputs.empty()) return none("it has no step input");
    bool once = true;
    for (const auto& memory : turn_.memories) once = arrays.insert(memory.array).second && once;
    for (const auto* some : {&turn_.inputs, &turn_.outputs}) {
      for (const auto& each : *some) once = arrays.insert(each.array).second && once;
    }
    return once ? std::move(turn_) : none("an array is used several times");
  }

  const ir::Block& body_;
  const std::vector<ir::OpRef>& ops_;
  size_t counted_ = 0;
  SequenceTurn turn_;
  std::vector<SequenceTurn::Element> carried_;  // written after the increment
};

}  // namespace

SequenceTurn read_sequence_turn(const ir::Block& body) { return Reader(body).run(); }

StepView SequenceTurn::view(const ir::Block& body) const {
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
