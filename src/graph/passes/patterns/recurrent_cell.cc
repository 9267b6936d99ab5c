#include "graph/passes/patterns/recurrent_cell.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

struct Kind {
  const char *what, *op, *refusal;
  bool (*match)(StepOps&, const CellStates&, RecurrentCell*);
  std::vector<const char*> first_states, values, kept, for_gradient;
};

constexpr const char* kNoState = "its memory is not a state of a GRU or of a simple cell";

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {.what = "an LSTM",
       .op = "lstm_steps",
       .refusal = "its memories are not the cell and state of an LSTM",
       .match = match_lstm,
       .first_states = {"H0", "C0"},
       .values = {"Hidden", "Cell"},
       .kept = {"KeptHidden", "KeptCell"},
       .for_gradient = {"Gates"}},
      {.what = "a GRU",
       .op = "gru_steps",
       .refusal = kNoState,
       .match = match_gru,
       .first_states = {"H0"},
       .values = {"Hidden"},
       .kept = {"KeptHidden"},
       .for_gradient = {"Gates", "Left"}},
      {.what = "a simple cell",
       .op = "simple_steps",
       .refusal = kNoState,
       .match = match_simple,
       .first_states = {"H0"},
       .values = {"Hidden"},
       .kept = {"KeptHidden"},
       .for_gradient = {}},
  };
  return all;
}

class Matcher {
 public:
  explicit Matcher(const StepView& view) : view_(view), ops_(view) {}

  RecurrentCell run() {
    const size_t memories = view_.memories.size();
    if (!ops_.written_twice().empty()) return none(fmt::format("{} is written twice", ops_.written_twice()));
    const char* refusal = nullptr;
    for (const Kind& kind : kinds()) {
      if (kind.first_states.size() != memories) continue;
      refusal = kind.refusal;
      if (!with_inputs(kind)) continue;
      if (std::string why = outputs(kind); !why.empty()) return none(std::move(why));
      if (const ir::Op* other = ops_.left_over())
        return none(fmt::format("{} has no part in {}", other->type, kind.what));
      return found_;
    }
    return none(refusal ? refusal : fmt::format("it has {} memories, not 1 or 2", memories));
  }

 private:
  static RecurrentCell none(std::string why) {
    RecurrentCell left;
    left.why = std::move(why);
    return left;
  }

  // One input is x; a second one can be a mask.
  bool with_inputs(const Kind& kind) {
    if (view_.inputs.empty() || view_.inputs.size() > 2) return false;
    for (size_t x = 0; x < view_.inputs.size(); ++x) {
      const std::string mask = view_.inputs.size() == 2 ? view_.inputs[1 - x] : "";
      if (with_order(kind, view_.inputs[x], mask)) return true;
    }
    return false;
  }

  bool with_order(const Kind& kind, const std::string& x, const std::string& mask) {
    std::vector<size_t> order(view_.memories.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      if (ops_.attempt([&] { return with(kind, x, mask, order); })) return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  bool with(const Kind& kind, const std::string& x, const std::string& mask, const std::vector<size_t>& order) {
    CellStates states{.before = {}, .after = {}, .x = x};
    values_.clear();
    for (const size_t m : order) {
      const std::string kept = ops_.original(view_.states[m]);
      states.before.push_back(view_.memories[m]);
      states.after.push_back(mask.empty() ? kept : fresh(kept, mask, view_.memories[m]));
      values_.push_back(kept);
    }
    if (!mask.empty()) values_.insert(values_.begin(), states.after.begin(), states.after.end());
    found_ = {};
    found_.what = kind.what;
    found_.op = kind.op;
    found_.x = x;
    found_.mask = mask;
    found_.memories = order;
    return kind.match(ops_, states, &found_);
  }

  // The form fresh mask - before (mask - 1).
  std::string fresh(const std::string& kept, const std::string& mask, const std::string& before) {
    const auto two = ops_.operands(kept, "elementwise_sub");
    if (!two) return "";
    const std::string share = by_rows(two->first, mask);
    const ir::Op* rest = ops_.made(two->second, "elementwise_mul");
    if (share.empty() || !rest || sole(rest->input("X")) != before || rest->attr<int32_t>("axis") != 0) return "";
    const ir::Op* less = ops_.made(sole(rest->input("Y")), "scale");
    const bool one_less = less && sole(less->input("X")) == mask && less->attr<float>("scale") == 1.0f &&
                          less->attr<float>("bias") == -1.0f && less->input("ScaleTensor").empty();
    return one_less ? share : "";
  }

  std::string by_rows(const std::string& name, const std::string& mask) {
    const ir::Op* mul = ops_.made(name, "elementwise_mul");
    const bool fits = mul && sole(mul->input("Y")) == mask && mul->attr<int32_t>("axis") == 0;
    return fits ? sole(mul->input("X")) : "";
  }

  std::string outputs(const Kind& kind) {
    for (const auto& name : view_.outputs) {
      const auto at = std::find(values_.begin(), values_.end(), ops_.original(name));
      if (at == values_.end()) return fmt::format("{} is given out", name);
      found_.shows.push_back(static_cast<size_t>(at - values_.begin()));
    }
    found_.first_states = kind.first_states;
    found_.values = kind.values;
    if (!found_.mask.empty()) found_.values.insert(found_.values.end(), kind.kept.begin(), kind.kept.end());
    found_.for_gradient = kind.for_gradient;
    return "";
  }

  const StepView& view_;
  StepOps ops_;
  RecurrentCell found_;
  std::vector<std::string> values_;  // their names
};

}  // namespace

RecurrentCell match_cell(const StepView& view) { return Matcher(view).run(); }

const char* skip_cells(const PassContext& context) {
  return context.build.use_bfloat16 ? "use_bfloat16 is True: products of a step are rounded one by one" : nullptr;
}

}  // namespace anabranch
