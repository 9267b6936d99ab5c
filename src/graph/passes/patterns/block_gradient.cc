#include "graph/passes/patterns/block_gradient.h"

#include <fmt/format.h>

#include <algorithm>

namespace anabranch {
namespace {

bool is_gradient_slot(const std::string& slot) { return slot.ends_with("@GRAD"); }
std::string without_grad(const std::string& slot) { return slot.substr(0, slot.size() - 5); }

// Attributes that a gradient op copies from its forward op must be equal; roles and source lines may differ.
bool same_attributes(const ir::Op& forward, const ir::Op& gradient) {
  return std::all_of(gradient.attrs.begin(), gradient.attrs.end(), [&](const auto& attr) {
    const auto it = forward.attrs.find(attr.first);
    return it == forward.attrs.end() || attr.first.starts_with("op_") || it->second == attr.second;
  });
}

std::string sole_output(const ir::Op& op) {
  const auto& outs = op.output("Out");
  return outs.size() == 1 ? outs[0] : "";
}

// Gradients of sums need only the shape of X, and may read it from Out@GRAD (the pass shape_reads).
bool reads_shape_alone(const ir::Op& gradient, const ir::Slot& slot) {
  const bool adds = gradient.type == "elementwise_add_grad" || gradient.type == "elementwise_sub_grad";
  return adds && slot.name == "X" && slot.args == gradient.input("Out@GRAD");
}

bool same_arguments(const ir::Op& forward, const ir::Op& gradient) {
  return std::all_of(gradient.inputs.begin(), gradient.inputs.end(), [&](const ir::Slot& slot) {
    return is_gradient_slot(slot.name) || slot.args.empty() || slot.args == forward.input(slot.name) ||
           slot.args == forward.output(slot.name) || reads_shape_alone(gradient, slot);
  });
}

}  // namespace

BlockGradient::BlockGradient(const Ops& forward, const Ops& gradient, const Seeds& seeds) : forward_(forward) {
  for (size_t i = 0; i < forward.size(); ++i) {
    for (const auto& slot : forward[i]->inputs) {
      for (size_t k = 0; k < slot.args.size(); ++k) {
        uses_[slot.args[k]].emplace_back(static_cast<int>(i), slot.name, k);
      }
    }
  }
  for (const auto& [var, name] : seeds) {
    const Share share{-1, name, 0};
    seeded_[var].insert(share);
    known_[name] = {var, {share}};
  }
  for (const auto& op : gradient) {
    if (take(*op)) continue;
    why_ = fmt::format("{} in its gradient is not what append_backward makes", op->type);
    return;
  }
}

std::set<BlockGradient::Share> BlockGradient::shares_of(const std::string& var) const {
  std::set<Share> shares;
  if (const auto seeded = seeded_.find(var); seeded != seeded_.end()) shares = seeded->second;
  const auto it = uses_.find(var);
  if (it == uses_.end()) return shares;
  for (const Share& use : it->second) {
    if (counts(std::get<0>(use))) shares.insert(use);
  }
  return shares;
}

bool BlockGradient::counts(int op) const {
  if (const auto it = counts_.find(op); it != counts_.end()) return it->second;
  counts_[op] = false;  // of an op that reads its own output
  const auto outs = forward_[static_cast<size_t>(op)]->output_args();
  const bool found = std::any_of(outs.begin(), outs.end(), [&](const auto& out) { return !shares_of(out).empty(); });
  return counts_[op] = found;
}

bool BlockGradient::is_whole(const std::string& name, const std::string& of) const {
  const auto it = known_.find(name);
  if (it == known_.end()) return false;
  const std::set<Share> shares = shares_of(of);
  if (it->second.of == of) return it->second.shares == shares;
  // The gradient of a sum is that of each term, and need not be copied (the pass remove_copies).
  if (shares.size() != 1 || std::get<0>(*shares.begin()) < 0) return false;
  const ir::Op& sum = *forward_[static_cast<size_t>(std::get<0>(*shares.begin()))];
  return sum.type == "sum" && sole_output(sum) == it->second.of && is_whole(name, it->second.of);
}

bool BlockGradient::is_gradient(const std::string& name, const std::string& of) const {
  return why_.empty() && is_whole(name, of);
}

std::string BlockGradient::of(const std::string& name) const {
  const auto it = known_.find(name);
  return it == known_.end() ? "" : it->second.of;
}

int BlockGradient::made_by(const std::string& name) const {
  const auto it = known_.find(name);
  return it == known_.end() || it->second.shares.size() != 1 ? -1 : std::get<0>(*it->second.shares.begin());
}

bool BlockGradient::keep(const std::string& name, Partial partial) {
  return known_.emplace(name, std::move(partial)).second;  // a name has one value
}

bool BlockGradient::take(const ir::Op& op) {
  if (op.type == "sum") return take_sum(op);
  if (op.type == "concat") return take_concat(op);
  if (op.type == "scale") return take_scale(op);
  const int of = forward_of(op);
  return of >= 0 && take_gradient(op, of);
}

bool BlockGradient::take_sum(const ir::Op& op) {
  Partial sum;
  for (const auto& name : op.input("X")) {
    const auto it = known_.find(name);
    if (it == known_.end() || (!sum.of.empty() && sum.of != it->second.of)) return false;
    sum.of = it->second.of;
    for (const Share& share : it->second.shares) {
      if (!sum.shares.insert(share).second) return false;
    }
  }
  return op.output("Out").size() == 1 && keep(op.output("Out")[0], std::move(sum));
}

// The gradient of a split.
bool BlockGradient::take_concat(const ir::Op& op) {
  for (size_t i = 0; i < forward_.size(); ++i) {
    const ir::Op& split = *forward_[i];
    if (split.type != "split" || split.attr<int32_t>("axis") != op.attr<int32_t>("axis")) continue;
    const auto &parts = split.output("Out"), &gradients = op.input("X");
    if (parts.size() != gradients.size() || !op.input("AxisTensor").empty()) continue;
    bool whole = true;
    for (size_t k = 0; k < parts.size(); ++k) whole = whole && is_whole(gradients[k], parts[k]);
    if (!whole) continue;
    return op.output("Out").size() == 1 &&
           keep(op.output("Out")[0], {split.input("X")[0], {Share{static_cast<int>(i), "X", 0}}});
  }
  return false;
}

// The gradient of a scale, or of one of the terms of a sum.
bool BlockGradient::take_scale(const ir::Op& op) {
  if (op.attr<float>("bias") != 0.0f || !op.input("ScaleTensor").empty() || op.input("X").size() != 1) return false;
  const auto share = next_share(op.input("X")[0], op.attr<float>("scale"));
  if (!share || op.output("Out").size() != 1) return false;
  const auto& [of, slot, place] = *share;
  const std::string var = forward_[static_cast<size_t>(of)]->input(slot)[place];
  scaled_.insert(*share);
  return keep(op.output("Out")[0], {var, {*share}});
}

// A use without a gradient, by an op that `whole` is the gradient of, with this scale factor.
std::optional<BlockGradient::Share> BlockGradient::next_share(const std::string& whole, float factor) const {
  for (size_t i = 0; i < forward_.size(); ++i) {
    const ir::Op& forward = *forward_[i];
    const bool scales = forward.type == "scale" && forward.input("ScaleTensor").empty();
    if (!scales && forward.type != "sum") continue;
    if ((scales ? forward.attr<float>("scale") : 1.0f) != factor) continue;
    if (forward.output("Out").size() != 1 || !is_whole(whole, forward.output("Out")[0])) continue;
    for (size_t k = 0; k < forward.input("X").size(); ++k) {
      const Share share{static_cast<int>(i), "X", k};
      if (!scaled_.count(share)) return share;
    }
  }
  return std::nullopt;
}

int BlockGradient::forward_of(const ir::Op& op) const {
  for (size_t i = 0; i < forward_.size(); ++i) {
    const ir::Op& forward = *forward_[i];
    if (op.type == forward.type + "_grad" && same_arguments(forward, op) && same_attributes(forward, op) &&
        std::all_of(op.inputs.begin(), op.inputs.end(), [&](const ir::Slot& slot) {
          if (!is_gradient_slot(slot.name)) return true;
          const auto& outs = forward.output(without_grad(slot.name));
          if (outs.size() != slot.args.size()) return false;
          for (size_t k = 0; k < outs.size(); ++k) {
            if (!is_whole(slot.args[k], outs[k])) return false;
          }
          return true;
        })) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool BlockGradient::take_gradient(const ir::Op& op, int of) {
  const ir::Op& forward = *forward_[static_cast<size_t>(of)];
  for (const auto& slot : op.outputs) {
    if (!is_gradient_slot(slot.name)) return false;
    const std::string name = without_grad(slot.name);
    const auto& ins = forward.input(name);
    for (size_t k = 0; k < slot.args.size(); ++k) {
      if (slot.args[k] == ir::kEmptyVar) continue;
      if (k >= ins.size() || !keep(slot.args[k], {ins[k], {Share{of, name, k}}})) return false;
    }
  }
  return true;
}

}  // namespace anabranch
