// Gradients of variables that a block only reads are summed in the order of the unrolled program: one term after
// another, whichever iteration of whichever block it comes from.
#include "opdef/sums_of_iterations.h"

#include <algorithm>

#include "autodiff/block_gradients.h"
#include "autodiff/names.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// Whether an iteration contributes at most one term of the gradient.
bool has_one_part(const ir::Block& body, const std::string& name) {
  std::ptrdiff_t uses = 0;
  for (const auto& op : body.ops()) {
    const auto ins = op->input_args();
    const auto count = std::count(ins.begin(), ins.end(), name);
    if (count > 0 && !op->sub_blocks().empty()) return false;
    uses += count;
  }
  return uses < 2;
}

}  // namespace

// If an iteration contributes several terms, or a block inside it does, the variable x@GRAD of the gradient block holds
// the sum.
void BlockGradients::submit_sums(size_t index, BlockGradients& inner) const {
  const ir::Op& op = *forward_.ops()[index];
  const ir::Block& body = inner.forward_;
  const auto ins = op.input_args(), outs = op.output_args();
  const bool repeats = find_op(op.type).has(kRepeats);
  for (const auto& name : std::set<std::string>(ins.begin(), ins.end())) {
    const ir::VarRef var = body.find_var(name) ? nullptr : body.find_var_recursive(name);
    if (!var || !needs(name)) continue;
    if (std::find(outs.begin(), outs.end(), name) != outs.end() || has_one_part(body, name)) continue;
    if (!repeats && !partials_.count(gradient_name(name))) continue;
    inner.submit(name);
    inner.sums_.insert(gradient_name(name));
  }
}

// No op has added to them: the block computes no gradient of these variables.
void BlockGradients::drop_empty_sums() {
  std::set<std::string> made;
  for (const auto& op : ops_) {
    for (const auto& out : op->output_args()) made.insert(out);
  }
  for (auto it = sums_.begin(); it != sums_.end();) {
    if (made.count(*it)) {
      ++it;
      continue;
    }
    partials_.erase(*it);
    submitted_.erase(forward_var_.at(*it));
    it = sums_.erase(it);
  }
}

// The op of the block reads the existing terms of such gradients and computes the total.
void BlockGradients::give_sums(const BlockGradients& inner, bool repeats, ir::Op& grad) const {
  const ir::Op& op = grad;
  std::vector<std::string> of, sums, inside;
  for (const auto& gradient : op.output_args()) {
    if (!is_gradient(gradient)) continue;
    const auto var = forward_var_.find(gradient);
    if (var == forward_var_.end() || std::find(of.begin(), of.end(), var->second) != of.end()) continue;
    if (!repeats && !inner.sums_.count(gradient)) continue;  // one term is added after the branch, as in Fluid
    const std::string& name = var->second;
    if (inner.sums_.count(gradient)) inside.push_back(name);
    const bool reads = !inner.forward_.find_var(name) && inner.partials_.count(gradient) != 0;
    const bool carried = inner.submitted_.count(name) && !inner.sums_.count(gradient);
    if (!reads || carried || !forward_.find_var_recursive(name) || !partials_.count(gradient)) continue;
    of.push_back(name);
    sums.push_back(gradient);
  }
  if (!inside.empty()) grad.attrs[kSumsInside] = std::move(inside);
  if (of.empty()) return;
  grad.attrs[kSumsOf] = std::move(of);
  grad.inputs.push_back({kSumSlot, std::move(sums)});
}

}  // namespace anabranch
