#include "graph/loss_seed.h"

#include <algorithm>
#include <set>

namespace anabranch {
namespace {

bool is_forward(const ir::Op& op) { return (op.role() & ~ir::role::kLoss) == ir::role::kForward; }

const ir::Op* producer(const ir::Block& block, const std::string& name) {
  const ir::Op* found = nullptr;
  for (const auto& op : block.ops()) {
    const auto outs = op->output_args();
    if (is_forward(*op) && std::find(outs.begin(), outs.end(), name) != outs.end()) found = op.get();
  }
  return found;
}

int uses(const ir::Block& block, const std::string& name) {
  int n = 0;
  for (const auto& op : block.ops()) {
    if (!is_forward(*op)) continue;
    const auto ins = op->input_args();
    n += static_cast<int>(std::count(ins.begin(), ins.end(), name));
  }
  return n;
}

bool passes_gradient_on(const std::string& type) {
  static const std::set<std::string> linear = {"scale",           "cast",     "sum",     "elementwise_add",
                                               "elementwise_sub", "reshape2", "reshape", "assign"};
  return linear.count(type) != 0;
}

// False when a value on the way is used more than once: its gradient has parts that must not be weighted twice.
bool walk(const ir::Block& block, const std::string& var, std::vector<LossBranch>* out, int depth) {
  if (depth > 256) return false;
  const ir::Op* op = producer(block, var);
  if (op && (op->type == "mean" || op->type == "reduce_mean")) {
    out->push_back({var, op->input("X").at(0)});
    return true;
  }
  if (!op || !passes_gradient_on(op->type)) {
    out->push_back({var, ""});
    return true;
  }
  for (const auto& in : op->input_args()) {
    const auto desc = block.find_var_recursive(in);
    if (desc && desc->stop_gradient) continue;
    if (uses(block, in) > 1 || !walk(block, in, out, depth + 1)) return false;
  }
  return true;
}

}  // namespace

std::vector<LossBranch> loss_branches(const ir::Block& block, const std::string& loss) {
  std::vector<LossBranch> branches;
  const bool understood = walk(block, loss, &branches, 0);
  const bool any_mean = std::any_of(branches.begin(), branches.end(), [](const auto& b) { return !b.counted.empty(); });
  if (!understood || !any_mean) return {{loss, ""}};
  return branches;
}

}  // namespace anabranch
