#include "graph/passes/patterns/sequence_tail.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

const std::set<std::string>& activations() {
  static const std::set<std::string> types = {"relu", "tanh", "sigmoid", "square", "exp", "log", "abs", "leaky_relu"};
  return types;
}

class RowCheck {
 public:
  RowCheck(const SequenceIteration& iteration, const ir::Block& body) : body_(body) {
    for (const auto& memory : iteration.memories) rows_.insert(memory.made);
  }

  // Rows of Out depend on the same rows of the inputs only.
  bool take(const ir::Op& op) {
    const std::string out = sole(op.output("Out"));
    if (!works_by_rows(op) || !is_matrix(out) || op.output_args().size() != 1) return false;
    rows_.insert(out);
    return true;
  }

 private:
  bool works_by_rows(const ir::Op& op) const {
    const auto &x = op.input("X"), &y = op.input("Y");
    const bool all = std::all_of(x.begin(), x.end(), [&](const auto& name) { return rows_.count(name) != 0; });
    if (!all || x.empty() || op.input_args().size() != x.size() + y.size()) return false;
    if (op.type == "sum" || activations().count(op.type) || op.type == "scale") return true;
    if (op.type == "softmax") return is_last_axis(op);
    if (op.type == "mul") {
      return is_outer(sole(y)) && op.attr<int32_t>("x_num_col_dims") == 1 && op.attr<int32_t>("y_num_col_dims") == 1;
    }
    if (op.type == "elementwise_add" && is_outer(sole(y))) return is_last_axis(op) && is_row(sole(y));
    const bool joins = op.type == "elementwise_add" || op.type == "elementwise_mul" || op.type == "elementwise_sub";
    return joins && rows_.count(sole(y)) != 0 && op.attr<int32_t>("axis") == -1 && same_shape(sole(x), sole(y));
  }

  bool is_outer(const std::string& name) const { return !name.empty() && body_.find_var(name) == nullptr; }
  bool is_row(const std::string& name) const {
    const ir::VarRef var = body_.find_var_recursive(name);
    return var && var->shape.rank() == 1;
  }
  bool is_matrix(const std::string& name) const {
    const ir::VarRef var = body_.find_var(name);
    return var && var->kind == VarKind::kLoDTensor && var->shape.rank() == 2;
  }
  bool same_shape(const std::string& a, const std::string& b) const {
    return is_matrix(a) && is_matrix(b) && body_.find_var(a)->shape[1] == body_.find_var(b)->shape[1];
  }

  const ir::Block& body_;
  std::set<std::string> rows_;
};

}  // namespace

std::set<size_t> tail_of(const SequenceIteration& iteration) {
  std::set<std::string> needed;
  for (const auto& memory : iteration.memories) needed.insert(memory.made);
  std::set<size_t> tail;
  for (size_t i = iteration.cell.size(); i-- > 0;) {
    const ir::Op& op = *iteration.cell[i];
    const auto outs = op.output_args();
    if (std::any_of(outs.begin(), outs.end(), [&](const auto& out) { return needed.count(out) != 0; })) {
      for (const auto& in : op.input_args()) needed.insert(in);
    } else {
      tail.insert(i);
    }
  }
  return tail;
}

std::string misfit_of_tail(const SequenceIteration& iteration, const std::set<size_t>& tail, const ir::Block& body) {
  RowCheck check(iteration, body);
  for (const size_t i : tail) {
    const ir::Op& op = *iteration.cell[i];
    if (!check.take(op)) return fmt::format("{} works on more than rows of its states", op.type);
  }
  return "";
}

GraphNode node_of_all_rows(const Graph& graph, const ir::Op& op, const GraphNode& like,
                           const std::function<int(const std::string&)>& var) {
  auto copy = std::make_shared<ir::Op>(op);
  GraphNode node;
  node.index = like.index;
  node.replica = like.replica;
  const auto rename = [&](std::vector<ir::Slot>* slots, std::vector<int>* ids) {
    for (ir::Slot& slot : *slots) {
      for (std::string& arg : slot.args) {
        ids->push_back(arg == ir::kEmptyVar ? -1 : var(arg));
        if (ids->back() >= 0) arg = graph.vars[static_cast<size_t>(ids->back())].name;
      }
    }
  };
  rename(&copy->inputs, &node.ins);
  rename(&copy->outputs, &node.outs);
  node.op = std::move(copy);
  return node;
}

}  // namespace anabranch
