// h' = (1 - u) h + u c, or with u and 1 - u exchanged, or h + u (c - h); u and r from x and h, c from x and r h. Or the
// op gru_unit.
#include "graph/passes/patterns/recurrent_cell.h"

namespace anabranch {
namespace {

enum GruGate { kUpdate, kReset, kGruCandidate, kGruGates };
constexpr const char* kActs[] = {"identity", "sigmoid", "tanh", "relu"};  // by the numbers of gru_unit

class GruMatcher {
 public:
  GruMatcher(StepOps& ops, const CellStates& states)
      : ops_(ops), sums_(ops, states.x, kGruGates), h_(states.before[0]), hidden_(states.after[0]) {}

  bool run(RecurrentCell* cell) {
    if (hidden_.empty()) return false;
    const auto tried = [&](auto&& fn) {
      return ops_.attempt([&] {
        const GateSums before = sums_;
        if (fn()) return true;
        sums_ = before;
        return false;
      });
    };
    if (!tried([&] { return unit(); }) && !tried([&] { return weighted(); }) && !tried([&] { return moved(); })) {
      return false;
    }
    const std::vector<int> places = {kUpdate, kReset, kGruCandidate};
    if (!sums_.finish() || !sums_.fits_x(places)) return false;
    cell->weights = sums_.weights();
    cell->biases = sums_.biases();
    cell->attrs = {{"weight_places", sums_.weight_places(places)},
                   {"bias_places", sums_.bias_places(places)},
                   {"gate_activation", std::string(gate_)},
                   {"activation", std::string(act_)},
                   {"origin_mode", origin_}};
    return true;
  }

 private:
  bool unit() {
    const ir::Op* op = ops_.made(hidden_, "gru_unit");
    if (!op || sole(op->output("Hidden")) != hidden_ || sole(op->input("HiddenPrev")) != h_) return false;
    gate_ = kActs[op->attr<int32_t>("gate_activation")];
    act_ = kActs[op->attr<int32_t>("activation")];
    origin_ = op->attr<bool>("origin_mode");
    const std::string bias = sole(op->input("Bias"));
    return (bias.empty() || sums_.bias(bias, {kUpdate, kReset, kGruCandidate})) &&
           sums_.unit_weight(sole(op->input("Weight"))) &&
           sums_.joint(sole(op->input("Input")), {kUpdate, kReset, kGruCandidate}, "");
  }

  // Two factors that add up to 1.
  bool weighted() {
    return sums_.either(ops_.operands(hidden_, "elementwise_add"), [&](const auto& old, const auto& fresh) {
      return sums_.either(ops_.operands(old, "elementwise_mul"), [&](const auto& share, const auto& h) {
        return h == h_ && sums_.either(ops_.operands(fresh, "elementwise_mul"),
                                       [&](const auto& rest, const auto& c) { return shares(share, rest, c); });
      });
    });
  }

  bool shares(const std::string& of_old, const std::string& of_new, const std::string& candidate) {
    origin_ = ops_.one_less(of_new) == of_old;
    if (!origin_ && ops_.one_less(of_old) != of_new) return false;
    return gates(origin_ ? of_old : of_new, candidate);
  }

  // h + u (c - h), h - u (h - c), c + u (h - c)
  bool moved() {
    return sums_.either(ops_.operands(hidden_, "elementwise_add"), [&](const auto& from, const auto& step) {
      return moved_by(from, step, false);
    }) || less(ops_.operands(hidden_, "elementwise_sub"));
  }

  bool less(const std::optional<std::pair<std::string, std::string>>& two) {
    return two && moved_by(two->first, two->second, true);
  }

  bool moved_by(const std::string& from, const std::string& step, bool back) {
    return sums_.either(ops_.operands(step, "elementwise_mul"), [&](const auto& share, const auto& way) {
      const auto ends = ops_.operands(way, "elementwise_sub");
      if (!ends || (back ? ends->first : ends->second) != from) return false;
      const std::string& to = back ? ends->second : ends->first;
      origin_ = to == h_;
      return (origin_ || from == h_) && gates(share, origin_ ? from : to);
    });
  }

  bool gates(const std::string& update, const std::string& candidate) {
    const std::string sum = ops_.inside(candidate, act_);
    if (sum.empty() || !sums_.activated(update, gate_, kUpdate, h_)) return false;
    return with_left(sum, [&](const std::string& left) {
      return sums_.either(ops_.operands(left, "elementwise_mul"), [&](const auto& reset, const auto& h) {
        return h == h_ && sums_.activated(reset, gate_, kReset, h_) &&
               sums_.activated(candidate, act_, kGruCandidate, left);
      });
    });
  }

  // fn(name) for candidates of r h among the operands of the sum.
  template <class Fn> bool with_left(const std::string& sum, Fn&& fn) {
    for (const std::string& name : operands_below(sum, 4)) {
      if (ops_.attempt([&] { return fn(name); })) return true;
    }
    return false;
  }

  std::vector<std::string> operands_below(const std::string& name, int depth) {
    std::vector<std::string> found;
    if (depth == 0) return found;
    for (const char* type : {"elementwise_add", "sum", "mul", "matmul", "concat"}) {
      const ir::Op* op = nullptr;
      ops_.attempt([&] {
        op = ops_.made(name, type);
        return false;
      });
      if (!op) continue;
      for (const auto& x : op->input("X")) {
        found.push_back(x);
        for (auto& below : operands_below(x, depth - 1)) found.push_back(std::move(below));
      }
      if (op->type == std::string("elementwise_add")) {
        for (auto& below : operands_below(sole(op->input("Y")), depth - 1)) found.push_back(std::move(below));
      }
    }
    return found;
  }

  StepOps& ops_;
  GateSums sums_;
  const std::string h_, hidden_;
  const char *gate_ = "sigmoid", *act_ = "tanh";
  bool origin_ = false;
};

}  // namespace

bool match_gru(StepOps& ops, const CellStates& states, RecurrentCell* cell) {
  return GruMatcher(ops, states).run(cell);
}

}  // namespace anabranch
