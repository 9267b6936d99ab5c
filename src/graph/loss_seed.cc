#include "graph/loss_seed.h"

#include <algorithm>
#include <set>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

struct Mean {
  std::string var, counted;
};

bool is_forward(const ir::Op& op) { return (op.role() & ~ir::role::kLoss) == ir::role::kForward; }

bool writes(const ir::Op& op, const std::string& name) {
  const auto outs = op.output_args();
  return std::find(outs.begin(), outs.end(), name) != outs.end();
}

// The forward ops before the seed op on which one loss depends.
class LossPath {
 public:
  LossPath(const ir::Block& block, size_t end, const std::string& loss) : block_(block) {
    std::set<std::string> needed{loss};
    for (size_t i = end; i-- > 0;) {
      const ir::Op& op = *block.ops()[i];
      const auto outs = op.output_args();
      if (!is_forward(op) || std::none_of(outs.begin(), outs.end(), [&](auto& n) { return needed.count(n) != 0; })) {
        continue;
      }
      ops_.push_back(&op);
      for (const auto& in : op.input_args()) needed.insert(in);
    }
  }

  // False if a value on the path is used more than once: its gradient has terms that must not be weighted twice.
  bool walk(const std::string& var, std::vector<Mean>* out, int depth = 0) const {
    if (depth > 256) return false;
    const ir::Op* op = producer(var);
    const OpDef* def = op ? find_op_or_null(op->type) : nullptr;
    if (def && def->is(kMean)) {
      out->push_back({var, op->input("X").at(0)});
      return true;
    }
    if (!def || !def->is(kLinear)) {
      out->push_back({var, ""});
      return true;
    }
    for (const auto& in : op->input_args()) {
      const auto desc = block_.find_var_recursive(in);
      if (desc && desc->stop_gradient) continue;
      if (uses(in) > 1 || !walk(in, out, depth + 1)) return false;
    }
    return true;
  }

 private:
  const ir::Op* producer(const std::string& name) const {
    const auto it = std::find_if(ops_.begin(), ops_.end(), [&](const ir::Op* op) { return writes(*op, name); });
    return it == ops_.end() ? nullptr : *it;
  }

  int uses(const std::string& name) const {
    int n = 0;
    for (const ir::Op* op : ops_) {
      const auto ins = op->input_args();
      n += static_cast<int>(std::count(ins.begin(), ins.end(), name));
    }
    return n;
  }

  const ir::Block& block_;
  std::vector<const ir::Op*> ops_;  // last one first
};

// The variable of a gradient: a second differentiation adds a prefix or a number to names.
std::string variable_of(std::string gradient) {
  while (gradient.starts_with("grad/")) gradient.erase(0, 5);
  return gradient.substr(0, gradient.find(ir::kGradSuffix));
}

// Finds the total gradient of the mean's result, not its terms, among the outputs of ops [first, last). False: there
// are only terms. Without any, no trained variable precedes it.
bool find_gradient(const ir::Block& block, size_t first, size_t last, const Mean& mean, LossBranch* branch) {
  bool parts = false;
  *branch = {"", mean.counted};
  for (size_t i = first; i < last; ++i) {
    for (const auto& out : block.ops()[i]->output_args()) {
      if (out.find(ir::kGradSuffix) == out.npos || variable_of(out) != mean.var) continue;
      if (out.find("@RENAME@") != out.npos) {
        parts = true;
        continue;
      }
      branch->gradient = out;
      branch->made_by = static_cast<int>(i);
    }
  }
  return branch->made_by >= 0 || !parts;
}

std::vector<LossBranch> branches_of(const ir::Block& block, size_t seed, size_t last) {
  const std::string& gradient = block.ops()[seed]->output("Out").at(0);
  const std::string loss = variable_of(gradient);
  const LossBranch whole{gradient, "", static_cast<int>(seed)};
  std::vector<Mean> means;
  const bool understood = LossPath(block, seed, loss).walk(loss, &means);
  const bool any_mean = std::any_of(means.begin(), means.end(), [](const auto& m) { return !m.counted.empty(); });
  if (!understood || !any_mean) return {whole};
  if (means.size() == 1 && means[0].var == loss) return {{gradient, means[0].counted, static_cast<int>(seed)}};
  std::vector<LossBranch> branches;
  for (const auto& mean : means) {
    LossBranch branch;
    if (!find_gradient(block, seed, last, mean, &branch)) return {whole};
    if (branch.made_by >= 0) branches.push_back(std::move(branch));
  }
  return branches;
}

}  // namespace

bool is_loss_seed(const ir::Op& op) {
  const OpDef* def = op.role() == (ir::role::kBackward | ir::role::kLoss) ? find_op_or_null(op.type) : nullptr;
  return def && def->is(kConstant);
}

std::map<int, std::vector<LossBranch>> loss_branches(const ir::Block& block) {
  std::vector<size_t> seeds;
  for (size_t i = 0; i < block.ops().size(); ++i) {
    if (is_loss_seed(*block.ops()[i])) seeds.push_back(i);
  }
  std::map<int, std::vector<LossBranch>> branches;
  for (size_t k = 0; k < seeds.size(); ++k) {
    const size_t last = k + 1 < seeds.size() ? seeds[k + 1] : block.ops().size();
    branches[static_cast<int>(seeds[k])] = branches_of(block, seeds[k], last);
  }
  return branches;
}

}  // namespace anabranch
