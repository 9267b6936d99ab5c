// c' = c sigmoid(f) + sigmoid(i) tanh(j), h' = tanh(c') sigmoid(o); operands in any order, or the op lstm_unit.
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {
namespace {

enum LstmGate { kCandidate, kInput, kForget, kOutput, kGates };

class LstmMatcher {
 public:
  LstmMatcher(StepOps& ops, const CellStates& states)
      : ops_(ops),
        sums_(ops, states.x, kGates),
        h_(states.before[0]),
        c_(states.before[1]),
        hidden_(states.after[0]),
        cell_(states.after[1]) {}

  bool run(RecurrentCell* cell) {
    if (hidden_.empty() || cell_.empty()) return false;
    if (!ops_.attempt([&] { return unit(); }) && !(hidden() && cell_sum())) return false;
    if (!sums_.finish()) return false;
    const std::vector<int> places = sums_.widest();
    if (!sums_.fits_x(places)) return false;
    cell->weights = sums_.weights();
    cell->biases = sums_.biases();
    cell->attrs = {{"weight_places", sums_.weight_places(places)},
                   {"bias_places", sums_.bias_places(places)},
                   {"order", std::vector<int32_t>(places.begin(), places.end())},
                   {"forget_bias", forget_bias_}};
    return true;
  }

 private:
  bool unit() {
    const ir::Op* op = ops_.made(cell_, "lstm_unit");
    if (!op || sole(op->output("C")) != cell_ || sole(op->output("H")) != hidden_) return false;
    forget_bias_ = op->attr<float>("forget_bias");
    return sole(op->input("C_prev")) == c_ &&
           sums_.joint(sole(op->input("X")), {kInput, kForget, kOutput, kCandidate}, h_);
  }

  // tanh(c') sigmoid(o)
  bool hidden() {
    return product(hidden_, [&](const auto& a, const auto& b) {
      return ops_.inside(a, "tanh") == cell_ && sums_.activated(b, "sigmoid", kOutput, h_);
    });
  }

  bool cell_sum() {
    auto two = ops_.operands(cell_, "elementwise_add");
    if (const ir::Op* sum = ops_.made(cell_, "sum"); sum && sum->input("X").size() == 2) {
      two = std::pair{sum->input("X")[0], sum->input("X")[1]};
    }
    return sums_.either(two, [&](const auto& a, const auto& b) { return kept(a) && added(b); });
  }

  bool kept(const std::string& name) {
    return product(name,
                   [&](const auto& a, const auto& b) { return a == c_ && sums_.activated(b, "sigmoid", kForget, h_); });
  }

  bool added(const std::string& name) {
    return product(name, [&](const auto& a, const auto& b) {
      return sums_.activated(a, "sigmoid", kInput, h_) && sums_.activated(b, "tanh", kCandidate, h_);
    });
  }

  template <class Fn> bool product(const std::string& name, Fn&& fn) {
    return sums_.either(ops_.operands(name, "elementwise_mul"), fn);
  }

  StepOps& ops_;
  GateSums sums_;
  const std::string h_, c_, hidden_, cell_;
  float forget_bias_ = 0.0f;
};

}  // namespace

bool match_lstm(StepOps& ops, const CellStates& states, RecurrentCell* cell) {
  return LstmMatcher(ops, states).run(cell);
}

}  // namespace anabranch
