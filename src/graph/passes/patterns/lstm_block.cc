#include "graph/passes/patterns/lstm_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace anabranch {
namespace {

using Names = std::vector<std::string>;

// Follows values of a block back to the ops that make them, and notes which ops have been met.
class Body {
 public:
  explicit Body(const ir::Block& block) : block_(block) {
    for (size_t i = 0; i < block.ops().size(); ++i) {
      for (const auto& name : block.ops()[i]->output_args()) {
        if (!made_by_.emplace(name, static_cast<int>(i)).second) twice_ = name;
      }
    }
  }
  const std::string& written_twice() const { return twice_; }
  bool makes(const std::string& name) const { return made_by_.count(name) != 0; }
  bool owns(const std::string& name) const { return block_.find_var(name) != nullptr; }

  // The op of this type that makes the value; null when another one does, or none.
  const ir::Op* made(const std::string& name, const char* type) {
    const auto it = made_by_.find(name);
    if (it == made_by_.end() || block_.ops()[static_cast<size_t>(it->second)]->type != type) return nullptr;
    met_.insert(it->second);
    return block_.ops()[static_cast<size_t>(it->second)].get();
  }
  // What a step hands on is a copy.
  std::string original(std::string name) {
    while (const ir::Op* copy = made(name, "rnn_memory_helper")) name = copy->input("X")[0];
    return name;
  }
  const ir::Op* left_over() const {
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      if (!met_.count(static_cast<int>(i))) return block_.ops()[i].get();
    }
    return nullptr;
  }

 private:
  const ir::Block& block_;
  std::map<std::string, int> made_by_;
  std::set<int> met_;
  std::string twice_;
};

std::string sole(const Names& names) { return names.size() == 1 ? names[0] : ""; }

class Matcher {
 public:
  Matcher(const ir::Block& block, const ir::Op& op) : body_(block), op_(op) {}

  LstmBlock run() {
    const auto& memories = op_.attr<Names>("ex_states");
    if (op_.attr<bool>("reverse")) return none("it runs from the last step to the first");
    if (memories.size() != 2) return none(fmt::format("it has {} memories, not 2", memories.size()));
    if (op_.input("inputs").size() != 1) return none(fmt::format("it has {} inputs", op_.input("inputs").size()));
    if (!body_.written_twice().empty()) return none(fmt::format("{} is written twice", body_.written_twice()));
    found_.x = op_.input("inputs")[0];
    if (!cell_with(0, 1) && !cell_with(1, 0)) return none("its memories are no cell and state of an LSTM");
    for (const auto& name : op_.output("outputs")) {
      const std::string shown = body_.original(name);
      if (shown != hidden_ && shown != cell_) return none(fmt::format("{} is given out", name));
      found_.shows_hidden.push_back(shown == hidden_);
    }
    if (const ir::Op* other = body_.left_over()) return none(fmt::format("{} has no part in an LSTM", other->type));
    return found_;
  }

 private:
  LstmBlock none(std::string why) {
    LstmBlock left;
    left.why = std::move(why);
    return left;
  }

  // Two operands of one shape, or a bias that is added.
  std::optional<std::pair<std::string, std::string>> operands(const std::string& name, const char* type) {
    const ir::Op* op = body_.made(name, type);
    if (!op) return std::nullopt;
    return std::pair{sole(op->input("X")), sole(op->input("Y"))};
  }

  std::string inside(const std::string& name, const char* activation) {
    const ir::Op* op = body_.made(name, activation);
    return op ? sole(op->input("X")) : "";
  }

  // fn(a, b), or fn(b, a).
  template <class Fn> bool either(const std::optional<std::pair<std::string, std::string>>& two, Fn&& fn) {
    return two && (fn(two->first, two->second) || fn(two->second, two->first));
  }

  bool cell_with(size_t hidden, size_t cell) {
    const auto &memories = op_.attr<Names>("ex_states"), &states = op_.attr<Names>("states");
    h_ = memories[hidden];
    c_ = memories[cell];
    hidden_ = body_.original(states[hidden]);
    cell_ = body_.original(states[cell]);
    found_.hidden_memory = hidden;
    found_.cell_memory = cell;
    sums_.clear();
    const bool fits =
        either(operands(hidden_, "elementwise_mul"),
               [&](const auto& a, const auto& b) { return inside(a, "tanh") == cell_ && gate(b, 3); }) &&
        either(operands(cell_, "elementwise_add"), [&](const auto& a, const auto& b) { return kept(a) && added(b); });
    return fits && all_places() && sums();
  }

  bool kept(const std::string& name) {
    return either(operands(name, "elementwise_mul"),
                  [&](const auto& a, const auto& b) { return a == c_ && gate(b, 2); });
  }

  bool added(const std::string& name) {
    return either(operands(name, "elementwise_mul"), [&](const auto& a, const auto& b) {
      const std::string candidate = inside(b, "tanh");
      return gate(a, 1) && !candidate.empty() && part(candidate, 0);
    });
  }

  bool gate(const std::string& name, int which) {
    std::string sum = inside(name, "sigmoid");
    if (sum.empty()) return false;
    if (which == 2) {
      if (const auto biased = operands(sum, "elementwise_add"); biased && !body_.makes(biased->second)) {
        if (body_.owns(biased->second)) return false;
        found_.forget_bias = biased->second;
        sum = biased->first;
      }
    }
    return part(sum, which);
  }

  // One of four equal parts of the gates.
  bool part(const std::string& name, int which) {
    const ir::Op* split = body_.made(name, "split");
    if (!split || split->output("Out").size() != 4 || !split->attr<std::vector<int32_t>>("sections").empty()) {
      return false;
    }
    if (!split->input("AxisTensor").empty() || !last_axis(*split)) return false;
    const auto& parts = split->output("Out");
    const auto place = std::find(parts.begin(), parts.end(), name) - parts.begin();
    found_.order[static_cast<size_t>(which)] = static_cast<int>(place);
    if (sums_.empty()) sums_ = sole(split->input("X"));
    return !sums_.empty() && sums_ == sole(split->input("X"));
  }

  static bool last_axis(const ir::Op& op) {
    const auto axis = op.attr<int32_t>("axis");
    return axis == 1 || axis == -1;
  }

  bool all_places() const {
    std::set<int> places(found_.order.begin(), found_.order.end());
    return places.size() == 4;
  }

  // [x, h] weight + bias
  bool sums() {
    std::string product = sums_;
    found_.bias.clear();
    if (const ir::Op* add = body_.made(sums_, "elementwise_add")) {
      found_.bias = sole(add->input("Y"));
      product = sole(add->input("X"));
      if (!last_axis(*add) || found_.bias.empty() || body_.owns(found_.bias)) return false;
    }
    const ir::Op* mul = plain_product(product);
    if (!mul) return false;
    found_.weight = sole(mul->input("Y"));
    const ir::Op* joined = body_.made(sole(mul->input("X")), "concat");
    if (!joined || !last_axis(*joined) || !joined->input("AxisTensor").empty()) return false;
    const auto& x = joined->input("X");
    if (x.size() != 2 || found_.weight.empty() || body_.owns(found_.weight)) return false;
    found_.state_first = x[0] == h_;
    return found_.state_first ? x[1] == found_.x : x[0] == found_.x && x[1] == h_;
  }

  const ir::Op* plain_product(const std::string& name) {
    if (const ir::Op* mul = body_.made(name, "mul")) {
      const bool flat = mul->attr<int32_t>("x_num_col_dims") == 1 && mul->attr<int32_t>("y_num_col_dims") == 1;
      return flat ? mul : nullptr;
    }
    const ir::Op* product = body_.made(name, "matmul");
    if (!product || product->attr<bool>("transpose_X") || product->attr<bool>("transpose_Y")) return nullptr;
    return product->attr<float>("alpha") == 1.0f ? product : nullptr;
  }

  Body body_;
  const ir::Op& op_;
  LstmBlock found_;
  std::string h_, c_, hidden_, cell_, sums_;
};

}  // namespace

LstmBlock match_lstm(const ir::Block& block, const ir::Op& recurrent) { return Matcher(block, recurrent).run(); }

}  // namespace anabranch
