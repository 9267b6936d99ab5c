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
    if (turn_.condition.empty()) return none("its condition is no comparison with the number of steps");
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

  // Of the count, for the gradient.
  bool take_copy(const ir::Op& op, bool before) {
    if (op.type != "assign" || (op.role() & ir::role::kBackward) == 0) return false;
    if (sole(op.input("X")) != turn_.count || is_outer(sole(op.output("Out")))) return false;
    (before ? turn_.now : turn_.next).insert(sole(op.output("Out")));
    return true;
  }

  // Elements of which the first rows are read are memories, if the turn writes the next one; others are inputs.
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
  const BlockGradient::Ops& ops_;
  size_t counted_ = 0;
  SequenceTurn turn_;
  std::vector<SequenceTurn::Element> carried_;  // written behind the increment
};

template <class Elements> bool any_array(const Elements& elements, const std::string& name) {
  return std::any_of(elements.begin(), elements.end(), [&](const auto& each) { return each.array == name; });
}

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

SequenceTurnGradient::SequenceTurnGradient(const SequenceTurn& turn, const ir::Block& gradient,
                                           const std::map<std::string, int>& given)
    : sorted_(sort(turn, gradient)), check_(turn.cell, sorted_.plain, sorted_.seeds), why_(check(turn, given)) {}

SequenceTurnGradient::Sorted SequenceTurnGradient::sort(const SequenceTurn& turn, const ir::Block& gradient) {
  Sorted sorted;
  for (const auto& op : gradient.ops()) {
    bool taken = true;
    if (op->type == "write_to_array_grad") {
      taken = take_write(turn, *op, &sorted);
    } else if (op->type == "read_from_array_grad") {
      taken = take_read(turn, *op, &sorted);
    } else if (op->type == "shrink_rnn_memory_grad") {
      sorted.shrunk.emplace_back(sole(op->output("X@GRAD")), sole(op->input("Out@GRAD")));
    } else {
      sorted.plain.push_back(op);
    }
    if (!taken) sorted.why = fmt::format("{} in its gradient is not what append_backward makes", op->type);
  }
  return sorted;
}

bool SequenceTurnGradient::take_write(const SequenceTurn& turn, const ir::Op& op, Sorted* sorted) {
  const std::string value = sole(op.input("X")), at = sole(op.input("I")), made = sole(op.output("X@GRAD"));
  const std::string gradient = sole(op.input("Out@GRAD"));
  if (made.empty() || made == ir::kEmptyVar || sole(op.output("Rest")) != gradient) return false;
  const auto take = [&](const std::string& array, const std::string& written, const std::set<std::string>& places) {
    if (gradient != ir::grad_name(array) || value != written || places.count(at) == 0) return false;
    sorted->seeds.emplace_back(value, made);
    return sorted->written.emplace(array, made).second;
  };
  return std::any_of(turn.outputs.begin(), turn.outputs.end(),
                     [&](const auto& output) { return take(output.array, output.value, turn.now); }) ||
         std::any_of(turn.memories.begin(), turn.memories.end(),
                     [&](const auto& memory) { return take(memory.array, memory.made, turn.next); });
}

bool SequenceTurnGradient::take_read(const SequenceTurn& turn, const ir::Op& op, Sorted* sorted) {
  const std::string to = sole(op.output("X@GRAD"));
  if (turn.now.count(sole(op.input("I"))) == 0 || !to.ends_with("@GRAD")) return false;
  const std::string array = to.substr(0, to.size() - 5);
  if (!any_array(turn.inputs, array) && !any_array(turn.memories, array)) return false;
  sorted->read.emplace_back(array, sole(op.input("Out@GRAD")));
  return true;
}

std::string SequenceTurnGradient::gradient_read(const std::string& array) const {
  std::string found;
  for (const auto& [of, gradient] : sorted_.read) {
    if (of != array) continue;
    found = found.empty() ? gradient : ir::kEmptyVar;
  }
  return found;
}

std::string SequenceTurnGradient::taken_from(const std::string& array) const {
  const auto it = sorted_.written.find(array);
  return it == sorted_.written.end() ? "" : it->second;
}

SequenceTurnGradient::Part SequenceTurnGradient::part(const SequenceTurn& turn, const std::set<size_t>& places) const {
  std::set<std::string> inner;
  for (const size_t place : places) {
    for (const auto& out : turn.cell[place]->output_args()) inner.insert(out);
  }
  Part found;
  for (const auto& op : sorted_.plain) {
    std::vector<std::string> outs = op->output_args();
    std::erase(outs, ir::kEmptyVar);
    if (outs.empty()) continue;
    const int by = check_.made_by(outs[0]);
    const bool among = op->type == "sum" ? inner.count(check_.of(outs[0])) != 0
                                         : by >= 0 && places.count(static_cast<size_t>(by)) != 0;
    if (!among) continue;
    found.ops.push_back(op);
    for (const auto& out : outs) {
      if (!inner.count(check_.of(out))) found.made.emplace_back(out, check_.of(out));
    }
  }
  return found;
}

std::string SequenceTurnGradient::check(const SequenceTurn& turn, const std::map<std::string, int>& given) const {
  if (!sorted_.why.empty()) return sorted_.why;
  if (!check_.why().empty()) return check_.why();
  for (const auto& output : turn.outputs) {
    if (given.count(output.array) != sorted_.written.count(output.array)) return "its gradient has other outputs";
  }
  for (const auto& memory : turn.memories) {
    const std::string read = gradient_read(memory.array);
    const auto first = std::find_if(sorted_.shrunk.begin(), sorted_.shrunk.end(),
                                    [&](const auto& shrunk) { return shrunk.first == read; });
    const bool whole = sorted_.written.count(memory.array) != 0 && !read.empty() && first != sorted_.shrunk.end() &&
                       check_.is_gradient(first->second, memory.value);
    if (!whole) return fmt::format("the gradient of {} is another", memory.value);
  }
  for (const auto& input : turn.inputs) {
    const std::string read = gradient_read(input.array);
    if (!read.empty() && !check_.is_gradient(read, input.value)) {
      return fmt::format("the gradient of {} is another", input.value);
    }
  }
  return "";
}

}  // namespace anabranch
